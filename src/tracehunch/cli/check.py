"""``tracehunch check HUNCH TRACE``: hold a trace against a hunch.toml."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tracehunch.cli import common
from tracehunch.cli.inputs import refuse_file_for_github, refuse_to_overwrite
from tracehunch.cli.options import (
    all_option,
    ci_output_options,
    debug_option,
    gate_options,
    max_memory_option,
)
from tracehunch.units import join, plural, printable

if TYPE_CHECKING:
    from tracehunch.guess import Guess
    from tracehunch.guess.hunch import Hunch
    from tracehunch.trace.model import Trace
    from tracehunch.verdict import Look


@click.command("check")
@click.argument("hunch", type=click.Path(path_type=Path))
@click.argument("trace")
@ci_output_options
@all_option
@gate_options("warning")
@max_memory_option
@debug_option
def check(  # noqa: PLR0917  # click passes all by name
    hunch: Path,
    trace: str,
    output_format: str | None,
    output: Path | None,
    all_findings: bool,
    fail_on: str,
    strict: bool,
    max_memory: int | None,
) -> int:
    """Hold TRACE against the claims of HUNCH, a hunch.toml.

    Each claim holds, is a surprise, or cannot be told from the trace; the last is listed with what would
    record it, and is a failure with --strict. 'tracehunch guess --from TRACE' writes a hunch.toml; findings
    that the trace had then are shown, and are no failure.

    Exit codes: 0 fine; 1 a surprise or finding at or above --fail-on; 2 the trace or the claims cannot be
    read, or times are claimed for other hardware; 3 with --strict, the file is damaged or a claim cannot be
    told.
    """
    from tracehunch import api  # noqa: PLC0415  # numpy and msgspec load only when a trace is looked at
    from tracehunch.guess.hunch import read_hunch  # noqa: PLC0415  # as above

    picked = common.pick_format(output_format, output)
    refuse_to_overwrite(output, hunch, Path(trace))
    refuse_file_for_github(picked, output)
    claimed = read_hunch(hunch)
    recorded = common.read_trace(trace, max_memory)
    seen = api.check(claimed.guess, recorded)
    _tell(claimed, recorded, hunch)
    trace = common.shown_trace(trace, recorded.label)
    if picked == "github":
        common.emit_github(*_for_github(seen, trace))
    else:
        common.emit(_rendered(seen, picked, output, trace, all_findings=all_findings), output)
    _tell_untold(seen, strict=strict)
    counted = _without_known(seen, claimed.guess)
    code = _code(counted, fail_on, strict=strict)
    if code != common.FINE:
        common.note(f"exit {code}: {_why(counted, code, fail_on)}")
    return code


def _without_known(seen: Look, guess: Guess) -> Look:
    """Leave out, for the exit code, the findings that were there when the guess was made; they are told."""
    from tracehunch.api.looking import unknown_findings  # noqa: PLC0415  # as above

    new = unknown_findings(seen, guess)
    if n_known := len(seen.checked.findings) - len(new):
        common.note(f"{plural(n_known, 'finding')} known when the guess was made: no failure")
    return replace(seen, checked=replace(seen.checked, findings=new))


def _code(seen: Look, fail_on: str, *, strict: bool) -> int:
    """Return 3 with ``strict`` for a claim that cannot be told, where nothing is worse, else as any look."""
    code = common.exit_code(seen, fail_on, strict=strict)
    return common.LOST if strict and code == common.FINE and seen.verdict.cannot_tell else code


def _why(seen: Look, code: int, fail_on: str) -> str:
    """Say in a line what makes the exit code: the worst surprise or finding, and how many more there are."""
    from tracehunch.verdict import SEVERITIES  # noqa: PLC0415  # as above

    if code == common.LOST:
        return f"{_lost(seen)} (--strict)"
    said = [
        (one.severity, f"{one.claim.key} in {one.claim.scope} is a surprise ({one.severity})")
        for one in seen.verdict.surprises
    ]
    said += [
        (one.severity, f"finding {one.id} in {one.scope} is {_A[one.severity]}")
        for one in seen.checked.findings
    ]
    level = SEVERITIES.index
    failing = sorted((one for one in said if level(one[0]) >= level(fail_on)), key=lambda one: -level(one[0]))
    more = f", and {len(failing) - 1} more" if len(failing) > 1 else ""
    above = level(failing[0][0]) + 1
    lenient = SEVERITIES[above] if above < len(SEVERITIES) else "never"
    return f"{printable(failing[0][1])}{more} (--fail-on {lenient} would pass)"


_A: Final = {"error": "an error", "warning": "a warning", "note": "a note"}


def _lost(seen: Look) -> str:
    tree = seen.facts.tree
    if lossy := [notice.code for notice in (*tree.trace.notices, *tree.notices) if notice.lossy]:
        return f"the file is damaged, or data was lost ({join(lossy)})"
    return f"{plural(len(seen.verdict.cannot_tell), 'claim')} could not be told"


def _for_github(seen: Look, source: str) -> tuple[str, str]:
    """Return the workflow commands, and the report for the step's summary."""
    from tracehunch.report import github, markdown  # noqa: PLC0415  # loaded only where it is needed
    from tracehunch.report.summary import Selection  # noqa: PLC0415  # as above

    chosen = Selection(all_findings=True)
    return github.render(seen, source=source), markdown.render(seen, selection=chosen, source=source)


def _rendered(
    seen: Look, picked: str, output: Path | None, source: str, *, all_findings: bool
) -> str | bytes:
    if picked == "json":
        from tracehunch.report import json_report  # noqa: PLC0415  # a renderer is imported only when it is needed

        return json_report.render(seen)
    from tracehunch.report.summary import Selection  # noqa: PLC0415  # as above

    selection = Selection(all_findings=all_findings)
    if picked == "html":
        from tracehunch.report.html import look_page  # noqa: PLC0415  # as above

        return look_page.render(seen, selection=selection, source=source)
    if picked == "markdown":
        from tracehunch.report import markdown  # noqa: PLC0415  # as above

        return markdown.render(seen, selection=selection, source=source)
    from tracehunch.report import terminal  # noqa: PLC0415  # as above

    return terminal.render(seen, view=common.view(output), selection=selection, source=source, numbers=False)


def _tell(claimed: Hunch, recorded: Trace, path: Path) -> None:
    """Tell what a person should know of the guess before they trust the verdict."""
    from tracehunch.guess.context import differences  # noqa: PLC0415  # numpy loads with it

    if claimed.edited:
        common.note(f"{path} was edited after it was sealed; it is taken as it is now")
    for name, expected, found in differences(claimed.guess.context, recorded):
        common.note(
            f"the guess was made for {name} {printable(expected)}, the trace is of {printable(found)}: "
            "counts may differ"
        )


def _tell_untold(seen: Look, *, strict: bool) -> None:
    untold = seen.verdict.cannot_tell
    if untold and not strict:
        common.note(
            f"{plural(len(untold), 'claim')} could not be told from this trace; --strict makes that a failure"
        )
    for scope in dict.fromkeys(one.scope for one in untold if one.reason.startswith("the trace has no")):
        reason = next(one.reason for one in untold if one.scope == scope)
        common.note(f"not checked, as {printable(reason)}")
