"""What is timed: tasks, each on some traces, by us and by every peer that has an equivalent."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from speed_traces import AFTER, Wanted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DRIVERS: Final = Path(__file__).parent / "peers"
OURS: Final = "tracehunch"
PLAIN: Final = ("json", "orjson", "msgspec")
PEERS: Final = ("hta", "tracelens", "tb")
PARTS: Final = ("start-up", "load", "look", "checks", "diff", "ranks", "huge")

HUGE: Final = Wanted(3000, stacks=True, packed=True)
RANKS_MB: Final = 10


@dataclass(frozen=True, slots=True)
class Case:
    """One command to time. `stage` names the driver's last stage that counts; empty: the whole process."""

    part: str
    what: str
    program: str
    command: tuple[str, ...]
    reads: tuple[Path, ...] = ()
    stage: str = ""

    @property
    def group(self) -> tuple[str, str]:
        """Cases of one group run by turns."""
        return self.part, self.what


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for on the command line."""

    parts: Sequence[str]
    sizes: Sequence[float]
    pythons: Mapping[str, str]
    folder: Path
    ranks: int
    full: bool

    def others(self, trace: Wanted) -> list[str]:
        """Return which peers are timed on a trace: all on small ones, on others where it tells most."""
        if not self.full and trace.megabytes > 10 and trace.packed:
            return []
        if not self.full and trace.megabytes > 100 and not trace.stacks:
            return []
        return list(self.pythons)

    def traces(self) -> list[Wanted]:
        """Return every trace of the wanted sizes."""
        return [
            Wanted(size, stacks, packed)
            for size in self.sizes
            for stacks in (True, False)
            for packed in (False, True)
        ]

    def diffs(self) -> list[Wanted]:
        """Return the first trace of each diff."""
        return [Wanted(size) for size in self.sizes if self.full or 10 <= size <= 100]

    @property
    def job(self) -> Path:
        """The folder with one file a rank."""
        return self.folder / f"ranks_{self.ranks}"


def files(plan: Plan) -> list[Wanted]:
    """Return the traces that have to be there."""
    found: list[Wanted] = []
    if {"load", "look", "checks"} & set(plan.parts):
        found += plan.traces()
    if "diff" in plan.parts:
        found += [other for trace in plan.diffs() for other in (trace, _after(trace))]
    return found + ([HUGE] if "huge" in plan.parts else [])


def _after(trace: Wanted) -> Wanted:
    return Wanted(round(trace.megabytes * AFTER, 2), trace.stacks, trace.packed)


def cases(plan: Plan) -> Iterator[Case]:
    """Yield what is timed, in the order of the tables."""
    of_part = {
        "start-up": _start_up,
        "load": _load,
        "look": _look,
        "checks": _checks,
        "diff": _diff,
        "ranks": _ranks,
        "huge": _huge,
    }
    for part in PARTS:
        if part in plan.parts:
            yield from of_part[part](plan)


def _ours(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tracehunch", *words)


def _driver(plan: Plan, name: str, *words: str) -> tuple[str, ...]:
    python = plan.pythons["plain" if name in PLAIN else name] if name != "ours" else sys.executable
    script = "plain" if name in PLAIN else name
    return (python, str(DRIVERS / f"drive_{script}.py"), *words)


def _peers(plan: Plan, trace: Wanted) -> list[str]:
    return [name for name in PEERS if name in plan.others(trace)]


def _start_up(plan: Plan) -> Iterator[Case]:
    yield Case("start-up", "--help", OURS, _ours("--help"))
    yield Case("start-up", "import", OURS, (sys.executable, "-c", "import tracehunch"))
    for name in PEERS:
        if name in plan.pythons:
            yield Case("start-up", "import", name, _driver(plan, name, "import"))
    yield Case("start-up", "import", "python alone", (sys.executable, "-c", "pass"))


def _load(plan: Plan) -> Iterator[Case]:
    for trace in plan.traces():
        path = plan.folder / trace.name
        yield Case("load", trace.words, OURS, _driver(plan, "ours", "load", str(path)), (path,), "load")
        for name in PLAIN if "plain" in plan.others(trace) else ():
            yield Case("load", trace.words, name, _driver(plan, name, name, str(path)), (path,), "load")


def _look(plan: Plan) -> Iterator[Case]:
    for trace in plan.traces():
        path = plan.folder / trace.name
        yield Case("look", trace.words, OURS, _ours("look", "--format", "json", str(path)), (path,))
        for name in _peers(plan, trace):
            yield Case("look", trace.words, name, _driver(plan, name, "look", str(path)), (path,))


def _checks(plan: Plan) -> Iterator[Case]:
    for trace in plan.traces():
        path = plan.folder / trace.name
        if not trace.packed:
            yield Case("checks", trace.words, OURS, _driver(plan, "ours", "checks", str(path)), (path,))


def _diff(plan: Plan) -> Iterator[Case]:
    for trace in plan.diffs():
        pair = (plan.folder / trace.name, plan.folder / _after(trace).name)
        words = tuple(map(str, pair))
        yield Case("diff", trace.words, OURS, _ours("diff", "--format", "json", *words), pair)
        for name in _peers(plan, trace):
            if name != "tb":  # compares runs in the browser only
                yield Case("diff", trace.words, name, _driver(plan, name, "diff", *words), pair)


def _ranks(plan: Plan) -> Iterator[Case]:
    what = f"{plan.ranks} ranks of {RANKS_MB} MB, .json"
    yield Case("ranks", what, OURS, _ours("ranks", "--format", "json", str(plan.job)), (plan.job,))
    for name in ("hta", "tracelens"):
        if name in plan.pythons:
            yield Case("ranks", what, name, _driver(plan, name, "ranks", str(plan.job)), (plan.job,))


def _huge(plan: Plan) -> Iterator[Case]:
    path = plan.folder / HUGE.name
    yield Case("huge", HUGE.words, OURS, _ours("look", "--format", "json", str(path)), (path,))
