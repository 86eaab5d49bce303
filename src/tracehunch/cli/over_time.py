"""``tracehunch look --over-time PATH...``: cycles read as one run, and what changed in it."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tracehunch.cli import common
from tracehunch.cli.inputs import refuse_file_for_github, refuse_to_overwrite
from tracehunch.errors import ReadError, TracehunchError
from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.over_time import Cycle, OverTime, Unread
    from tracehunch.trace.discover import Source


def look_over_time(
    paths: Sequence[str],
    picked: str,
    output: Path | None,
    *,
    scopes: Sequence[str],
    all_scopes: bool,
    all_shifts: bool,
    max_memory: int | None,
    fail_on: str,
    strict: bool,
) -> int:
    """Read the files one at a time, report what changed, and return the exit code."""
    refuse_file_for_github(picked, output)
    report = _report(paths, output, scopes, all_scopes=all_scopes, max_memory=max_memory)
    sources = common.shown_paths(paths)
    if picked == "github":
        common.emit_github(*_for_github(report, sources))
    else:
        common.emit(_rendered(report, picked, output, sources, all_shifts=all_shifts), output)
    code, why = _code(report, fail_on, strict=strict)
    if code != common.FINE:
        common.note(f"exit {code}: {why}")
    return code


def _report(
    paths: Sequence[str],
    output: Path | None,
    scopes: Sequence[str],
    *,
    all_scopes: bool,
    max_memory: int | None,
) -> OverTime:
    from tracehunch.compare.over_time import Unread, over_time  # noqa: PLC0415  # numpy and msgspec load with it
    from tracehunch.trace.discover import discover  # noqa: PLC0415  # as above

    found = discover(paths)
    refuse_to_overwrite(output, *map(Path, paths), *(Path(one.place) for one in found.sources))
    unread = [Unread(one.shown, one.shown, _said(one.what, one.why)) for one in found.missed]
    cycles: list[Cycle] = []
    for source in found.sources:
        read = _cycle(source, max_memory, every_scope=all_scopes or bool(scopes))
        if isinstance(read, Unread):
            unread.append(read)
        else:
            cycles.append(read)
    if not cycles:
        raise _nothing(paths, unread)
    return over_time(_only(cycles, scopes), unread, found.notices)


def _cycle(source: Source, max_memory: int | None, *, every_scope: bool) -> Cycle | Unread:
    """Read one file; what it is made of is dropped when this returns."""
    from tracehunch.compare.over_time import Unread, cycle_of  # noqa: PLC0415  # as above

    try:
        trace = common.read_trace(source.place, max_memory)
    except ReadError as error:
        what = error.what.removeprefix(f"{Path(source.place).name}: ").removeprefix(f"{source.place}: ")
        return Unread(source.shown, source.shown, _said(what, error.why))
    return cycle_of(trace, source.shown, every_scope=every_scope, file_bytes=source.bytes)


def _said(what: str, why: str) -> str:
    return f"{what}: {why}" if why else what


def _nothing(paths: Sequence[str], unread: Sequence[Unread]) -> TracehunchError:
    what = f"nothing to read in {' '.join(common.shown_paths(paths))}"
    if not unread:
        return ReadError(what, "no file there is a trace", "give traces, a folder of them, or a pattern")
    more = f" (and {plural(len(unread) - 1, 'more file')})" if len(unread) > 1 else ""
    return ReadError(what, f"{unread[0].label}: {unread[0].why}{more}", "give traces that can be read")


def _only(cycles: Sequence[Cycle], patterns: Sequence[str]) -> list[Cycle]:
    """Return the cycles with the scopes asked for; all of them if none was."""
    if not patterns:
        return list(cycles)
    there = list(dict.fromkeys(name for cycle in cycles for name in cycle.scopes))
    meant: set[str] = set()
    for pattern in patterns:
        literal = pattern.replace("[", "[[]").replace("?", "[?]")
        names = [name for name in there if name == pattern or fnmatchcase(name, literal)]
        if not names:
            raise common.unknown_name("scope", pattern, there)
        meant |= set(names)
    return [replace(one, scopes={k: v for k, v in one.scopes.items() if k in meant}) for one in cycles]


def _for_github(report: OverTime, sources: Sequence[str]) -> tuple[str, str]:
    """Return the workflow commands, and the report for the step's summary."""
    from tracehunch.report import over_time_github, over_time_markdown  # noqa: PLC0415  # as above

    commands = over_time_github.render(report, sources=sources)
    return commands, over_time_markdown.render(report, sources=sources, all_shifts=True)


def _rendered(
    report: OverTime, picked: str, output: Path | None, sources: Sequence[str], *, all_shifts: bool
) -> str | bytes:
    """Render in the format picked; a renderer is imported only when it is needed."""
    if picked == "json":
        from tracehunch.report import over_time_json  # noqa: PLC0415  # as above

        return over_time_json.render(report)
    if picked == "html":
        from tracehunch.report.html import over_time_page  # noqa: PLC0415  # as above

        return over_time_page.render(report, sources=sources, all_shifts=all_shifts)
    if picked == "markdown":
        from tracehunch.report import over_time_markdown  # noqa: PLC0415  # as above

        return over_time_markdown.render(report, sources=sources, all_shifts=all_shifts)
    from tracehunch.report import over_time_terminal  # noqa: PLC0415  # as above

    return over_time_terminal.render(report, view=common.view(output), sources=sources, all_shifts=all_shifts)


def _code(report: OverTime, fail_on: str, *, strict: bool) -> tuple[int, str]:
    """Return the exit code and why: damage first, since what it hides may be worse."""
    from tracehunch.verdict import SEVERITIES  # noqa: PLC0415  # as above

    notices = [*report.notices, *(notice for run in report.runs for notice in run.notices)]
    lossy = [notice.code for notice in notices if notice.lossy]
    if strict and (lossy or report.unread):
        what = (
            f"{plural(len(report.unread), 'file')} not read"
            if report.unread
            else f"data was lost ({lossy[0]})"
        )
        return common.LOST, f"{what} (--strict)"
    if fail_on == "never":
        return common.FINE, ""
    level = SEVERITIES.index
    failing = [
        shift for run in report.runs for shift in run.shifts if level(shift.severity) >= level(fail_on)
    ]
    if not failing:
        return common.FINE, ""
    return common.FOUND, f"{plural(len(failing), 'change')} over time (--fail-on {fail_on})"
