"""What a program costs on the host: op calls, launches, module calls, autograd, and copies that block.

Costs are microseconds of one thread of Python on the measured machine; another CPU may take half or twice.
"""

from collections.abc import Sequence
from typing import Final

from tracehunch.predict.activities import TimeRange
from tracehunch.predict.program.model import CallGuess, HostTime
from tracehunch.predict.program.transfers import crosses

OP_US: Final = 4.0
"""Of a call of an op that PyTorch's dispatcher sees, with its Python; views as well."""

LAUNCH_US: Final = 11.5
"""Of a kernel, copy or memset, on top of its op."""

MODULE_US: Final = 12.5
"""Of a call of a module."""

GRAD_US: Final = 5.5
"""Of an op of a forward that is differentiated, or of its backward, on top."""

STEP_US: Final = 1000.0
"""Of an optimizer's step, whose Python sorts parameters into groups."""

ONCE_US: Final = 190.0
"""Of a run, whatever it does."""

PROFILED: Final = 1.45
"""How many times longer the host takes while it is profiled with shapes (median; 1.0 to 2.2)."""

_LOW: Final = 0.7
_HIGH: Final = 1.6
SOURCE: Final = (
    "fitted on 29 programs from transformers and torch.nn, eager, timed without a profiler on an H200's "
    "host: "
    "off by 14% at the median"
)


def host_time(calls: Sequence[CallGuess]) -> HostTime:
    """Return the host's time for the calls of a program."""
    launches = sum(_launches(one) for one in calls)
    modules = _module_calls(calls)
    middle = (
        ONCE_US + OP_US * len(calls) + LAUNCH_US * launches + MODULE_US * modules + _of_training(calls)
    ) * bool(calls)
    blocked = _blocked_us(calls)
    return HostTime(
        time=_range(middle, blocked),
        profiled=_range(middle * PROFILED, blocked),
        launches=launches,
        ops=len(calls),
        modules=modules,
        launch_us=LAUNCH_US,
        op_us=OP_US,
        module_us=MODULE_US,
        source=SOURCE,
    )


def _of_training(calls: Sequence[CallGuess]) -> float:
    """Return what autograd and the optimizer add; nothing where there is no backward."""
    phases = [one.call.phase for one in calls]
    if "backward" not in phases:
        return STEP_US * ("optimizer" in phases)
    of_graph = sum(phase != "optimizer" for phase in phases)
    return GRAD_US * of_graph + STEP_US * ("optimizer" in phases)


def _blocked_us(calls: Sequence[CallGuess]) -> float:
    """Return how long copies between host and GPU hold the host up."""
    blocking = (one for one in calls if crosses(one.call) and not one.call.options.get("non_blocking"))
    return sum(one.activities.time.mid_us for one in blocking if one.activities.time is not None)


def _launches(one: CallGuess) -> int:
    found = one.activities
    return len(found.kernels or ()) + len(found.copies or ()) + (found.memsets or 0)


def _module_calls(calls: Sequence[CallGuess]) -> int:
    """Count how often a module was entered, as far as its op calls tell."""
    entered = 0
    before: tuple[str, ...] = ()
    for one in calls:
        if one.call.phase != "forward":
            before = ()
            continue
        path = tuple(one.call.module.split(".")) if one.call.module else ()
        entered += len(path) - _shared(before, path)
        before = path
    return entered


def _shared(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _range(middle: float, blocked: float) -> TimeRange:
    return TimeRange(middle * _LOW + blocked, middle + blocked, middle * _HIGH + blocked)
