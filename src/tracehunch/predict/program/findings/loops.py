"""for-loop-indexing and unfused-optimizer: many small launches where one over all would do."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tracehunch.predict.program.findings._run import (
    WARNING,
    WORD,
    Run,
    at_line,
    launches,
    line_of,
    modules_of,
    scope_of,
    us_of,
)
from tracehunch.predict.program.host import LAUNCH_US, OP_US
from tracehunch.predict.program.model import CallGuess, Foreseen, Severity
from tracehunch.units import join, plural, time_us

LOOP: Final = "for-loop-indexing"
OPTIMIZER: Final = "unfused-optimizer"
_INDEXING: Final = frozenset(
    f"aten::{name}"
    for name in (
        "select", "slice", "index", "index_put_", "index_put", "index_fill_", "index_copy_", "index_add_",
        "index_select", "gather", "scatter_", "scatter_add_", "select_scatter", "slice_scatter",
    )
)  # fmt: skip
_MULTIPLYING: Final = frozenset(
    f"aten::{name}" for name in ("mm", "bmm", "addmm", "baddbmm", "convolution", "mv")
)
_LONGEST: Final = 8
"""Calls of one pass."""
_LEAST_PASSES: Final = 8
_TINY_US: Final = 10.0
_FIXED_US: Final = 1.0
_MANY: Final = 32
_TENSORS: Final = 4
_FUSED_LAUNCHES: Final = 10
"""Launches' worth of host time that a fused step of an optimizer takes."""
_LESS_TRAFFIC: Final = 0.54
"""What fused Adam saves of the time of a foreach step's traffic, measured on an H200."""
_OF_ADAM: Final = frozenset({"aten::_foreach_addcmul_", "aten::_foreach_addcdiv_", "aten::_foreach_lerp_"})
_IN_LISTS: Final = ("aten::_foreach_", "aten::_fused_")


@dataclass(frozen=True, slots=True)
class Loop:
    """A run of passes that make the same calls."""

    calls: tuple[CallGuess, ...]
    period: int

    @property
    def passes(self) -> int:
        """How often the pattern is repeated."""
        return len(self.calls) // self.period

    @property
    def names(self) -> tuple[str, ...]:
        """What one pass calls, each once."""
        return tuple(dict.fromkeys(one.call.op for one in self.calls[: self.period]))


def row_loops(run: Run) -> Iterator[Foreseen]:
    """Report Python loops over the rows of a tensor."""
    forward = [one for one in run.calls if one.call.phase == "forward"]
    for loop in find_loops(forward):
        if _is_over_rows(loop):
            yield from _row_loop(run, loop)


def find_loops(calls: Sequence[CallGuess]) -> list[Loop]:
    """Find runs of calls that repeat a short pattern at the same lines; none overlaps another."""
    keys = [(one.call.op, one.call.line, one.call.module) for one in calls]
    found = []
    at = 0
    while at < len(keys):
        runs = (_run_length(keys, at, period) for period in range(1, _LONGEST + 1))
        length, period = max(runs, key=lambda run: (run[0], -run[1]))
        if length >= _LEAST_PASSES * period:
            found.append(Loop(tuple(calls[at : at + length]), period))
            at += length
        else:
            at += 1
    return found


def _run_length(keys: Sequence[tuple[str, str, str]], at: int, period: int) -> tuple[int, int]:
    """Return how many calls from here on repeat with a period (whole passes), and the period."""
    end = at + period
    while end < len(keys) and keys[end] == keys[end - period]:
        end += 1
    whole = (end - at) // period * period
    return (whole, period) if whole >= _LEAST_PASSES * period else (0, period)


def _is_over_rows(loop: Loop) -> bool:
    names = set(loop.names)
    work = [one for one in loop.calls if launches(one)]
    if not names & _INDEXING or names & _MULTIPLYING or any(one.sdpa is not None for one in loop.calls):
        return False
    return len(work) >= loop.passes and us_of(work) / len(work) <= _TINY_US


def _row_loop(run: Run, loop: Loop) -> Iterator[Foreseen]:
    again = loop.calls[loop.period :]
    activities = sum(map(launches, loop.calls))
    fixed = min(_FIXED_US * sum(map(launches, again)), us_of(again))
    stake = _host_us(again) if run.bound == "launch" else fixed
    yield Foreseen(
        id=LOOP,
        scope=scope_of(loop.calls),
        severity=_severity(run, stake),
        confidence="medium",
        time_at_stake_us=stake,
        summary=f"a Python loop of {loop.passes} passes over {join(loop.names)}: "
        f"{plural(activities, 'GPU activity', 'GPU activities')} of "
        f"{time_us(us_of(loop.calls) / max(activities, 1))} each{at_line(loop.calls)}",
        cause=f"Each pass calls {plural(loop.period, 'op')} from Python for one row. At stake is what "
        "all passes but "
        "one cost: the host's time for them where the GPU waits for launches, else up to a microsecond an "
        "activity.",
        fix="Work on all rows at once: broadcasting in place of the loop (out[:] = 2 * x), index tensors "
        "(out[rows] = values), torch.where, scatter, index_copy_ or cumsum; torch.vmap for a function of "
        "one row.",
        modules=modules_of(loop.calls),
        line=line_of(loop.calls),
        subject=", ".join(loop.names),
        count=activities,
        small=_is_small(run, stake),
    )


def optimizers(run: Run) -> Iterator[Foreseen]:
    """Report optimizers that launch a kernel for each tensor, where a fused one would launch a few."""
    steps = [one for one in run.calls if one.call.phase == "optimizer" and launches(one)]
    listed = [one for one in steps if one.call.op.startswith(_IN_LISTS)]
    alone = [one for one in steps if not one.call.op.startswith(_IN_LISTS)]
    if len(listed) >= len(alone):
        yield from _foreach(run, listed)
        return
    kernels = sum(map(launches, alone))
    tensors = Counter(Counter(one.call.op for one in alone).values()).most_common(1)[0][0]
    if kernels < _MANY or tensors < _TENSORS:
        return
    gone = max(0.0, 1 - _FUSED_LAUNCHES / kernels)
    stake = gone * (_host_us(alone) if run.bound == "launch" else min(_FIXED_US * kernels, us_of(alone)))
    yield Foreseen(
        id=OPTIMIZER,
        scope="optimizer",
        severity=_severity(run, stake),
        confidence="high",
        time_at_stake_us=stake,
        summary=f"the optimizer updates its parameters one by one: {plural(kernels, 'kernel')} a step "
        "for about "
        f"{plural(tensors, 'tensor')}{at_line(alone)}",
        cause="Each op of the update is launched for each tensor. At stake is the host's time for the "
        "launches where "
        "the GPU waits for them, else up to a microsecond of its own each.",
        fix="torch.optim.AdamW(params, fused=True); Adam and SGD have it as well. Where fused is not to "
        "be had, "
        "foreach=True; torch._foreach_ functions for an optimizer of your own.",
        line=line_of(alone),
        subject=join(list(dict.fromkeys(one.call.op for one in alone))),
        count=kernels,
        small=_is_small(run, stake),
    )


def _foreach(run: Run, listed: Sequence[CallGuess]) -> Iterator[Foreseen]:
    """Note what a fused step of Adam would save where a foreach one runs."""
    names = {one.call.op for one in listed}
    kernels = sum(map(launches, listed))
    if not names.issuperset(_OF_ADAM):
        return
    gone = max(0.0, 1 - _FUSED_LAUNCHES / kernels)
    fixed = min(_FIXED_US * kernels, us_of(listed))
    host = gone * _host_us(listed) if run.bound == "launch" else 0.0
    stake = host + gone * fixed + _LESS_TRAFFIC * (us_of(listed) - fixed)
    yield Foreseen(
        id=OPTIMIZER,
        scope="optimizer",
        severity="note",
        confidence="medium",
        time_at_stake_us=stake,
        summary=f"Adam runs its foreach implementation, {plural(kernels, 'kernel')} a step, not the fused one"
        f"{at_line(listed)}",
        cause="Each foreach op reads and writes all parameters' values. At stake is the host's time for "
        "the launches "
        "where the GPU waits for them, and the traffic: for each value of a parameter a fused update "
        "reads and "
        "writes 7, the separate ops about 20.",
        fix="torch.optim.AdamW(params, fused=True).",
        line=line_of(listed),
        subject="Adam",
        count=kernels,
        small=_severity(run, stake) != "warning",
    )


def _host_us(calls: Sequence[CallGuess]) -> float:
    return OP_US * len(calls) + LAUNCH_US * sum(map(launches, calls))


def _severity(run: Run, stake: float) -> Severity:
    return "warning" if stake and stake >= WARNING * run.elapsed_us else "note"


def _is_small(run: Run, stake: float) -> bool:
    return stake < WORD * run.elapsed_us
