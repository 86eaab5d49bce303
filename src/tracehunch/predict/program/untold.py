"""What cannot be told of a program: obstacles of the recording, and calls whose launches are not known."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from tracehunch.predict.program.calls import Obstacle
from tracehunch.predict.program.model import CallGuess, Untold

_COUNTS: Final = ("kernels", "copies", "memsets")


def cannot_tell(calls: Iterable[CallGuess], obstacles: Sequence[Obstacle]) -> tuple[Untold, ...]:
    """Return obstacles in their order, then ops by how many calls of them are open."""
    return (*(_of_obstacle(one) for one in obstacles), *_of_calls(calls))


def _of_obstacle(one: Obstacle) -> Untold:
    leaves: tuple[str, ...] = ("all that follows",) if one.stops else (*_COUNTS, "gpu_time")
    modules = (one.module,) if one.module else ()
    return Untold("", 1, one.reason, leaves, modules, one.line, one.remedy)


def _of_calls(calls: Iterable[CallGuess]) -> list[Untold]:
    groups: dict[tuple[str, str, tuple[str, ...]], list[CallGuess]] = defaultdict(list)
    for one in calls:
        leaves = _open(one)
        if leaves:
            groups[one.call.op, _reason(one), leaves].append(one)
    found = [
        Untold(op, len(same), reason, leaves, _modules(same), same[0].call.line)
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
