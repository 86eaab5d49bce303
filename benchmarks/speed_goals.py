"""What was to be reached, held against what was measured."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from speed_cases import HUGE, OURS
from speed_table import NAMES, markdown
from speed_traces import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from speed_table import Result

Key = tuple[str, str, str]
LARGEST: Final = Wanted(500).words
LOOK: Final = ("look", LARGEST, OURS)
HUGE_LOOK: Final = ("huge", HUGE.words, OURS)
HELP: Final = ("start-up", "--help", OURS)
IMPORT: Final = ("start-up", "import", OURS)
FASTER: Final = 10
MOST_EXPONENT: Final = 1.1


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal, what was seen, and whether it was reached; None where it was not measured."""

    words: str
    seen: str = "not measured"
    reached: bool | None = None


def goals(results: Iterable[Result], sizes: Mapping[str, int]) -> list[Goal]:
    """Hold results against the goals; `sizes` has the bytes of each file by what tables call it."""
    found = {(result.case.part, result.case.what, result.case.program): result for result in results}
    return [
        _most("`look` on 500 MB with stacks takes at most 5 s", found.get(LOOK), _s, 5, "s"),
        _most("and at most 1 GB", found.get(LOOK), _gb, 1, "GB"),
        _faster("hta", found),
        _faster("tracelens", found),
        _linear(found, sizes),
        _most("`tracehunch --help` takes at most 150 ms", found.get(HELP), _ms, 150, "ms"),
        _most("`import tracehunch` takes at most 100 ms", found.get(IMPORT), _ms, 100, "ms"),
        _most("`look` on 3 GB with stacks from .gz takes at most 45 s", found.get(HUGE_LOOK), _s, 45, "s"),
        _most("and at most 4 GB", found.get(HUGE_LOOK), _gb, 4, "GB"),
    ]


def _s(result: Result) -> float:
    return result.seconds


def _ms(result: Result) -> float:
    return result.seconds * 1e3


def _gb(result: Result) -> float:
    return result.peak_bytes / 1e9


def _most(words: str, result: Result | None, of: Callable[[Result], float], limit: float, unit: str) -> Goal:
    if result is None:
        return Goal(words)
    if result.problem:
        return Goal(words, result.problem, reached=False)
    return Goal(words, f"{of(result):.3g} {unit}", of(result) <= limit)


def _faster(name: str, found: Mapping[Key, Result]) -> Goal:
    words = f"it is at least {FASTER} times faster than {NAMES[name]}"
    ours, theirs = found.get(LOOK), found.get(("look", LARGEST, name))
    if ours is None or theirs is None or ours.problem or (theirs.problem and not theirs.late):
        return Goal(words)
    ratio = theirs.seconds / ours.seconds
    return Goal(words, f"{'over ' if theirs.late else ''}{ratio:.1f} times", ratio >= FASTER)


def exponent(points: Iterable[tuple[float, float]]) -> float:
    """Return by which power of size time grows: the slope of logarithms by least squares."""
    logs = [(math.log(size), math.log(seconds)) for size, seconds in points]
    x, y = (statistics.fmean(values) for values in zip(*logs, strict=True))
    return sum((a - x) * (b - y) for a, b in logs) / sum((a - x) ** 2 for a, _ in logs)


def _linear(found: Mapping[Key, Result], sizes: Mapping[str, int]) -> Goal:
    """Of plain traces with stacks; the last step alone has to be linear too, where start-up hides less."""
    words = f"it is linear from 10 to 500 MB: exponents at most {MOST_EXPONENT}"
    rows = [found.get(("look", Wanted(size).words, OURS)) for size in (10, 100, 500)]
    known = [row for row in rows if row is not None and not row.problem]
    if len(known) < len(rows):
        return Goal(words)
    points = [(sizes[row.case.what], row.seconds) for row in known]
    powers = exponent(points), exponent(points[1:])
    return Goal(words, "{:.2f}, from 100 MB {:.2f}".format(*powers), max(powers) <= MOST_EXPONENT)


def goal_table(found: Sequence[Goal]) -> str:
    """Return goals as a table in Markdown."""
    said = {True: "reached", False: "**missed**", None: ""}
    return "\n".join(
        markdown(
            [
                ["goal, on 2 cores", "seen", ""],
                *([goal.words, goal.seen, said[goal.reached]] for goal in found),
            ]
        )
    )
