"""A program's calls as the findings see them, and how much of its time something has to take for a word."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from tracehunch.predict.environment import Environment
from tracehunch.predict.program.calls import Program
from tracehunch.predict.program.compiled import GeneratedKernel
from tracehunch.predict.program.model import CallGuess, RunBound, Severity, Totals
from tracehunch.units import plural, share, time_us

WARNING: Final = 0.01
WORD: Final = 0.001
"""Parts of the run from which on something is worth a warning, or a note: as for findings of a trace."""

_SLOWED: Final = 2.0
"""How many times the GPU's time the host takes from which on faster kernels save nothing."""
_NUMBER: Final = re.compile(r"(?<![^.])\d+(?![^.])")
WHOLE: Final = "whole"

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What torch.compile made of some calls, which are known by their `id()`.

    `inside` are those in compiled regions, `generated` the kernels that Inductor writes, by the call that
    launches one. `replayed`: all regions run as CUDA graphs.
    """

    inside: frozenset[int]
    generated: Mapping[int, GeneratedKernel]
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """All calls of a program, its environment, and its totals; `compiled` of a program that is compiled."""

    calls: tuple[CallGuess, ...]
    program: Program
    env: Environment
    totals: Totals
    compiled: Compiled | None = None

    def eager(self) -> "Run":
        """Return the same with only the calls outside compiled regions."""
        if self.compiled is None:
            return self
        inside = self.compiled.inside
        return replace(self, calls=tuple(one for one in self.calls if id(one) not in inside))

    def names_of(self, one: CallGuess) -> tuple[str, ...]:
        """Return the op that a call is, or those that are merged in a generated kernel."""
        kernel = None if self.compiled is None else self.compiled.generated.get(id(one))
        return (one.call.op,) if kernel is None else tuple(f"aten::{op}" for op in kernel.ops)

    @property
    def gpu_us(self) -> float:
        """GPU time of the whole run, as far as it is known."""
        return self.totals.amounts.gpu_time_us or 0.0

    @property
    def host_us(self) -> float:
        """Host time without a profiler."""
        return self.totals.cpu_time_us

    @property
    def elapsed_us(self) -> float:
        """What the run takes from begin to end: the slower of both."""
        return max(self.gpu_us, self.host_us)

    @property
    def bound(self) -> RunBound | None:
        """What the run waits for."""
        return self.totals.bound

    def is_noticeable(self, us: float) -> bool:
        """Tell whether a time is worth a note."""
        return us > 0 and us >= WORD * self.gpu_us

    def is_material(self, us: float) -> bool:
        """Tell whether a time is worth a warning."""
        return us > 0 and us >= WARNING * self.gpu_us

    def severity(self, spent_us: float, saved_us: float) -> Severity:
        """Say how bad it is that something takes a time, of which a fix saves so much."""
        small = saved_us < WARNING * self.elapsed_us
        return "warning" if self.is_material(spent_us) and not small else "note"

    def severity_of_slow(self, spent_us: float, saved_us: float) -> Severity:
        """Say the same of slow kernels: a GPU that waits for launches gains nothing by faster ones."""
        if self.host_us > _SLOWED * self.gpu_us:
            return "note"
        return self.severity(spent_us, saved_us)

    def of_gpu(self, us: float) -> str:
        """Write ``28.23 us (14% of the GPU time)``."""
        return f"{time_us(us)} ({share(us, self.gpu_us)} of the GPU time)"


def us_of(calls: Iterable[CallGuess]) -> float:
    """Return the GPU time of calls, as far as it is known."""
    return sum(one.activities.time.mid_us for one in calls if one.activities.time is not None)


def launches(one: CallGuess) -> int:
    """Return how many kernels, copies and memsets a call launches."""
    found = one.activities
    return len(found.kernels or ()) + len(found.copies or ()) + (found.memsets or 0)


def grouped(calls: Iterable[CallGuess], key: Callable[[CallGuess], K]) -> dict[K, list[CallGuess]]:
    """Return calls by a key, in the order of the first of each."""
    found: dict[K, list[CallGuess]] = defaultdict(list)
    for one in calls:
        found[key(one)].append(one)
    return dict(found)


def scope_of(calls: Sequence[CallGuess]) -> str:
    """Return a path that all modules of calls fit, numbers that differ as stars; "whole" for no module."""
    paths = [one.call.module.split(".") for one in calls]
    first = paths[0]
    shortest = min(len(path) for path in paths)
    common: list[str] = []
    for at in range(shortest):
        parts = {path[at] for path in paths}
        if len(parts) == 1:
            common.append(first[at])
        elif all(part.isdigit() for part in parts):
            common.append("*")
        else:
            break
    return ".".join(common) or WHOLE


def modules_of(calls: Iterable[CallGuess]) -> tuple[str, ...]:
    """Return the modules of calls, each once, in order."""
    return tuple(dict.fromkeys(one.call.module for one in calls if one.call.module))


def kind_of_module(path: str) -> str:
    """Return a path with stars for numbers: modules that are alike have the same."""
    return _NUMBER.sub("*", path)


def at_line(calls: Sequence[CallGuess]) -> str:
    """Return where in the user's code, as " at model.py:12 and 2 other lines"; "" where it is not known."""
    lines = list(dict.fromkeys(one.call.line for one in calls if one.call.line))
    if not lines:
        return ""
    more = f" and {plural(len(lines) - 1, 'other line')}" if len(lines) > 1 else ""
    return f" at {lines[0]}{more}"


def line_of(calls: Sequence[CallGuess]) -> str:
    """Return the first line of the user's code that makes the calls."""
    return next((one.call.line for one in calls if one.call.line), "")


def times(number: int) -> str:
    """Write "once", or "6 times"."""
    return "once" if number == 1 else plural(number, "time")
