"""What cannot be told of a program: obstacles of the recording, and calls whose launches are not known."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tracehunch.predict.program.calls import Obstacle
from tracehunch.predict.program.model import CallGuess, Untold

_COUNTS: Final = ("kernels", "copies", "memsets")
_MEASURE: Final = (
    "the rest of the guess holds without it; a trace of this op alone, on the GPU, tells its part"
)


def cannot_tell(calls: Iterable[CallGuess], obstacles: Sequence[Obstacle]) -> tuple[Untold, ...]:
    """Return obstacles in their order, then ops by how many calls of them are open."""
    return (*_of_obstacles(obstacles), *_of_calls(calls))


def _of_obstacles(obstacles: Sequence[Obstacle]) -> Iterator[Untold]:
    """Return obstacles; those that differ in nothing but the module are one."""
    alike: dict[tuple[str, str, bool, str], list[Obstacle]] = defaultdict(list)
    for one in obstacles:
        alike[one.reason, one.line, one.stops, one.remedy].append(one)
    for (reason, line, stops, remedy), same in alike.items():
        leaves: tuple[str, ...] = ("all that follows",) if stops else (*_COUNTS, "gpu_time")
        modules = tuple(dict.fromkeys(one.module for one in same if one.module))
        yield Untold("", len(same), reason, leaves, modules, line, remedy)


def _of_calls(calls: Iterable[CallGuess]) -> list[Untold]:
    groups: dict[tuple[str, str, tuple[str, ...]], list[CallGuess]] = defaultdict(list)
    for one in calls:
        leaves = _open(one)
        if leaves:
            groups[one.call.op, _reason(one), leaves].append(one)
    found = [
        Untold(op, len(same), reason, leaves, _modules(same), same[0].call.line, _MEASURE)
        for (op, reason, leaves), same in groups.items()
    ]
    return sorted(found, key=lambda one: -one.count)


def _open(one: CallGuess) -> tuple[str, ...]:
    """Return the totals that a call leaves open."""
    found = one.activities
    counts = (found.kernels, found.copies, found.memsets)
    leaves = [name for name, count in zip(_COUNTS, counts, strict=True) if count is None]
    if found.time is None and not found.empty:
        leaves.append("gpu_time")
    return tuple(leaves)


def _reason(one: CallGuess) -> str:
    """Return why the first part that is open is."""
    for part in one.parts:
        found = part.activities
        is_open = None in (found.kernels, found.copies, found.memsets)
        if is_open and found.reasons:
            return found.reasons[0]
    return "how long it takes on this GPU is not known" if one.told else "what it launches is not known"


def _modules(calls: Iterable[CallGuess]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.call.module for one in calls if one.call.module))
