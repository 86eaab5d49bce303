"""From runs to tables in Markdown, with ratios."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from speed_cases import OURS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from speed_cases import Case
    from speed_runs import Run

TITLES: Final = {
    "start-up": "Start-up",
    "load": "Loading: file to linked tree, or to what the parser gives",
    "look": "`look`: the whole report, all checks",
    "checks": "Where the time of `look` goes",
    "diff": "`diff`",
    "ranks": "`ranks`",
    "huge": "Huge: tracehunch alone",
}
NAMES: Final = {"hta": "HTA", "tracelens": "TraceLens", "tb": "torch_tb_profiler"}


@dataclass(frozen=True, slots=True)
class Result:
    """A case and its runs."""

    case: Case
    runs: tuple[Run, ...]

    @property
    def problem(self) -> str:
        """Why there is no figure, if so."""
        return next((run.problem for run in self.runs if run.problem), "")

    @property
    def late(self) -> bool:
        """Whether its time ran out."""
        return any(run.late for run in self.runs)

    @property
    def times(self) -> list[float]:
        """Seconds of each run: of the process, or of the driver's stages up to the one that counts."""
        return [_until(run, self.case.stage) for run in self.runs]

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.times)

    @property
    def peak_bytes(self) -> int:
        """The largest of all runs."""
        return max(run.peak_bytes for run in self.runs)

    @property
    def failed(self) -> dict[str, str]:
        """Stages that broke, with their errors."""
        return {stage: error for run in self.runs for stage, error in run.failed.items()}


def _until(run: Run, stage: str) -> float:
    if not stage or stage not in run.stages:
        return run.seconds
    names = list(run.stages)
    return sum(run.stages[name] for name in names[: names.index(stage) + 1])


# tables


def tables(results: Sequence[Result]) -> str:
    """Return a table for each part that was run."""
    parts = dict.fromkeys(result.case.part for result in results)
    texts = [_stages(results) if part == "checks" else _table(part, results) for part in parts]
    return "\n\n".join(texts)


def _table(part: str, results: Sequence[Result]) -> str:
    mine = [result for result in results if result.case.part == part]
    programs = list(dict.fromkeys(result.case.program for result in mine))
    rows = [["", *map(_name, programs)]]
    for what in dict.fromkeys(result.case.what for result in mine):
        row = {result.case.program: result for result in mine if result.case.what == what}
        rows.append([what, *(_cell(row.get(name), row.get(OURS)) for name in programs)])
    notes = _notes(mine)
    return "\n".join([f"### {TITLES[part]}", "", *markdown(rows), *(["", *notes] if notes else [])])


def _name(program: str) -> str:
    return NAMES.get(program, program)


def _cell(result: Result | None, ours: Result | None) -> str:
    if result is None:
        return ""
    if result.problem:
        return result.problem if result.late else "failed †"
    ratio = "" if ours is None or ours is result or ours.problem else _ratio(result.seconds / ours.seconds)
    broken = " †" if result.failed else ""
    return f"{_seconds(result.seconds)}{ratio}, {_bytes(result.peak_bytes)}{broken}"


def _ratio(ratio: float) -> str:
    return f" ({ratio:.{0 if ratio >= 10 else 1 if ratio >= 1 else 2}f}x)"


def _notes(results: Sequence[Result]) -> list[str]:
    """Return a line for each way in which a program failed, in all or in a stage."""
    where: dict[tuple[str, str], list[str]] = {}
    for result in results:
        program = result.case.program
        for stage, error in result.failed.items():
            note = f"failed in its {stage} (`{error}`), and the rest is timed"
            where.setdefault((program, note), []).append(result.case.what)
        if result.problem and not result.late:
            where.setdefault((program, f"failed (`{result.problem}`)"), []).append(result.case.what)
    ran = Counter(result.case.program for result in results)
    return [
        f"† {_name(program)} {note}: {'; '.join(rows) if len(rows) < ran[program] else 'everywhere'}."
        for (program, note), rows in where.items()
    ]


def _stages(results: Sequence[Result]) -> str:
    mine = [result for result in results if result.case.part == "checks" and not result.problem]
    names = list(dict.fromkeys(name for result in mine for run in result.runs for name in run.stages))
    rows = [["", *names]]
    for result in mine:
        medians = [statistics.median(run.stages.get(name, 0.0) for run in result.runs) for name in names]
        rows.append([result.case.what, *map(_seconds, medians)])
    return "\n".join([f"### {TITLES['checks']}", "", *markdown(rows)])


def details(results: Sequence[Result]) -> str:
    """Return every case: median, smallest and largest of wall time, CPU time, peak memory."""
    rows = [["task", "on", "program", "runs", "wall", "min", "max", "CPU", "peak"]]
    for result in results:
        case = result.case
        cells = [result.problem, "", "", "", ""] if result.problem else _figures(result)
        rows.append([case.part, case.what, _name(case.program), str(len(result.runs)), *cells])
    return "\n".join(markdown(rows))


def _figures(result: Result) -> list[str]:
    cpu = statistics.median(run.cpu_seconds for run in result.runs)
    times = (result.seconds, min(result.times), max(result.times), cpu)
    return [*map(_seconds, times), _bytes(result.peak_bytes)]


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; all columns but the first are numbers."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], f"|---|{'---:|' * (len(rows[0]) - 1)}", *lines[1:]]


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s"


def _bytes(count: int) -> str:
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.2f} GB"
