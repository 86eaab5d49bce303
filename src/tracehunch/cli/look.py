"""``tracehunch look TRACE``: what a trace shows."""

from __future__ import annotations

import gc
from dataclasses import replace
from fnmatch import fnmatchcase
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
from tracehunch.cli.over_time import look_over_time
from tracehunch.errors import TracehunchError
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.report.summary import Selection
    from tracehunch.verdict import Look

_TABLE_ROWS: Final = 25
_KERNELS: Final = 10
_LONGEST: Final = 10
_NAMED: Final = 4
_TABLE_WIDTH: Final = 200  # where nobody told how wide the output is


@click.command("look")
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...")
@ci_output_options
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="NAME",
    help="Show only this scope (* matches any text); repeat for more.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="N",
    help="Kernels to list (default 10), rows of --table (25), or of what --critical-path lists (10).",
)
@click.option(
    "--table", is_flag=True, help="Show the profiler's own table (key_averages) instead of the report."
)
@click.option(
    "--critical-path",
    is_flag=True,
    help="Show what bounds a step (or --scope: a name, or ProfilerStep#N), and what would shorten it.",
)
@click.option(
    "--over-time",
    is_flag=True,
    help="Read all of TRACE... as one run in cycles: say what changed in it, when, and why.",
)
@click.option(
    "--all-scopes", "--frameworks", is_flag=True, help="List every scope, also those that frameworks wrote."
)
@all_option
@gate_options("never")
@max_memory_option
@debug_option
def look(  # noqa: PLR0917  # click passes all by name
    traces: tuple[str, ...],
    output_format: str | None,
    output: Path | None,
    scopes: tuple[str, ...],
    top: int | None,
    table: bool,
    critical_path: bool,
    over_time: bool,
    all_scopes: bool,
    all_findings: bool,
    fail_on: str,
    strict: bool,
    max_memory: int | None,
) -> int:
    """Say what TRACE shows, the costly surprises first.

    TRACE is a file that PyTorch's profiler wrote (.json, also compressed), a folder of such files (the newest
    is taken), or - for standard input. With --over-time it is all files of a run, several, a folder or a
    pattern in quotes: those that the profiler's schedule wrote, one a cycle.
    """
    from tracehunch.report.summary import Selection  # noqa: PLC0415  # numpy loads with it

    picked = common.pick_format(output_format, output)
    if over_time:
        if table or critical_path:
            raise click.UsageError("--over-time goes with neither --table nor --critical-path")
        return look_over_time(
            traces,
            picked,
            output,
            scopes=scopes,
            all_scopes=all_scopes,
            all_shifts=all_findings,
            max_memory=max_memory,
            fail_on=fail_on,
            strict=strict,
        )
    trace = _only_one(traces)
    refuse_to_overwrite(output, Path(trace))
    _refuse_unfit(picked, output, table=table, critical_path=critical_path)
    seen = _examined(trace, max_memory)
    named = common.shown_trace(trace, seen.facts.tree.trace.label)
    scopes = scopes if critical_path else _resolved(scopes, seen)
    if critical_path:
        result = _critical(seen, picked, output, scopes, source=named, top=top)
    elif table:
        result = _table(seen, picked, output, top or _TABLE_ROWS)
    else:
        chosen = Selection(scopes, top or _KERNELS, all_scopes=all_scopes, all_findings=all_findings)
        if picked == "github":
            common.emit_github(*_for_github(seen, chosen, source=named))
            return common.exit_code(seen, fail_on, strict=strict)
        result = _report(seen, picked, output, chosen, source=named)
    common.emit(result, output)
    return common.exit_code(seen, fail_on, strict=strict)


def _only_one(traces: Sequence[str]) -> str:
    if len(traces) > 1:
        raise click.UsageError(
            f"{len(traces)} traces: give one, or read the cycles of one run together with --over-time, "
            "all ranks of a job with tracehunch ranks"
        )
    return traces[0]


def _refuse_unfit(picked: str, output: Path | None, *, table: bool, critical_path: bool) -> None:
    if table and picked in ("html", "github"):
        raise click.UsageError(f"--table is no part of --format {picked}; leave one of them out")
    if critical_path and (table or picked == "github"):
        other = "--table" if table else "--format github"
        raise click.UsageError(f"--critical-path and {other} exclude each other; leave one of them out")
    refuse_file_for_github(picked, output)


def _for_github(seen: Look, selection: Selection, *, source: str) -> tuple[str, str]:
    """Return the workflow commands, and the report for the step's summary."""
    from tracehunch.report import github, markdown  # noqa: PLC0415  # loaded only where it is needed

    commands = github.render(seen, selection=selection, source=source)
    whole = replace(selection, all_findings=True)
    return commands, markdown.render(seen, selection=whole, source=source)


def _examined(source: str, max_memory: int | None) -> Look:
    from tracehunch.judge import examine  # noqa: PLC0415  # numpy and msgspec load only when a trace is looked at
    from tracehunch.trace.collecting import uncollected  # noqa: PLC0415  # numpy loads with it

    with uncollected():
        seen = examine(common.read_trace(source, max_memory))
        gc.freeze()  # it lives until the end: no collection needs to search it
    return seen


def _report(
    seen: Look, picked: str, output: Path | None, selection: Selection, *, source: str
) -> str | bytes:
    """Render in the format picked; a renderer is imported only when it is needed."""
    if picked == "json":
        from tracehunch.report import json_report  # noqa: PLC0415  # loaded only where it is needed

        return json_report.render(seen, scopes=selection.scopes)
    if picked == "html":
        from tracehunch.report.html import look_page  # noqa: PLC0415  # loaded only where it is needed

        return look_page.render(seen, selection=selection, source=source)
    if picked == "markdown":
        from tracehunch.report import markdown  # noqa: PLC0415  # loaded only where it is needed

        return markdown.render(seen, selection=selection, source=source)
    from tracehunch.report import terminal  # noqa: PLC0415  # loaded only where it is needed

    return terminal.render(seen, view=common.view(output), selection=selection, source=source)


def _table(seen: Look, picked: str, output: Path | None, top: int) -> str | bytes:
    from tracehunch.report import json_report, table  # noqa: PLC0415  # as above

    tree = seen.facts.tree
    if picked == "json":
        return json_report.encode({"schema": json_report.SCHEMA, "table": table.table_object(tree)})
    if picked == "markdown":
        return table.render_markdown(tree, top=top)
    return table.render(tree, view=common.view(output, unknown_width=_TABLE_WIDTH), top=top)


def _critical(
    seen: Look,
    picked: str,
    output: Path | None,
    scopes: tuple[str, ...],
    *,
    source: str,
    top: int | None,
) -> str | bytes:
    """Render the critical path of a step, or of the one scope that is named."""
    from tracehunch.compare.critical import critical_path  # noqa: PLC0415  # numpy loads with it
    from tracehunch.report import (  # noqa: PLC0415  # as above
        critical_json,
        critical_markdown,
        critical_terminal,
    )

    path = critical_path(seen.facts, _one_scope(scopes, seen))
    if picked == "json":
        return critical_json.render(seen, path)
    if picked == "html":
        from tracehunch.report.html import look_page  # noqa: PLC0415  # as above

        return look_page.render(seen, source=source, path=path)
    if picked == "markdown":
        return critical_markdown.render(seen, path, source=source, top=top or _LONGEST)
    view = common.view(output)
    return critical_terminal.render(seen, path, view=view, source=source, top=top or _LONGEST)


def _one_scope(scopes: Sequence[str], seen: Look) -> str | None:
    """Return the one scope, or step, that is meant; None where none was named."""
    if len(scopes) > 1:
        raise click.UsageError("--critical-path takes one --scope apart; name one")
    if not scopes:
        return None
    trace = seen.facts.tree.trace
    calls = [call for scope in seen.facts.scopes if scope.scope.kind == "step" for call in scope.scope.calls]
    steps = [trace.name_of(call.row) for call in calls]
    if scopes[0] in steps:
        return scopes[0]
    if steps and "#" in scopes[0] and scopes[0].startswith(steps[0].split("#")[0]):
        there = steps[0] if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
        raise TracehunchError(f"no step {scopes[0]!r}", todo=f"the trace has {printable(there)}")
    found = _resolved(scopes, seen)
    if len(found) > 1:
        named = printable(", ".join(found[:_NAMED]))
        raise click.UsageError(
            f"--critical-path takes one scope apart; {printable(scopes[0])} means {len(found)}: {named}"
            + (" ..." if len(found) > _NAMED else "")
        )
    return found[0]


def _resolved(scopes: Sequence[str], seen: Look) -> tuple[str, ...]:
    """Return the names of the scopes meant: a name, the end of a module's path, or a pattern with ``*``."""
    there = [scope.scope.name for scope in seen.facts.scopes]
    found: list[str] = []
    for scope in scopes:
        pattern = scope.replace("[", "[[]").replace("?", "[?]")
        meant = [name for name in there if name == scope] or [
            name
            for name in there
            if name.endswith(f"/{scope}") or ("*" in scope and fnmatchcase(name, pattern))
        ]
        if not meant:
            raise common.unknown_name("scope", scope, there)
        found += meant
    return tuple(dict.fromkeys(found))
