"""``tracehunch diff BEFORE AFTER``: what changed between two traces, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehunch.cli import common
from tracehunch.cli.inputs import refuse_file_for_github, refuse_to_overwrite
from tracehunch.cli.options import ci_output_options, debug_option, gate_options, max_memory_option
from tracehunch.units import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare import Diff
    from tracehunch.verdict import Look


@click.command("diff")
@click.argument("before")
@click.argument("after")
@ci_output_options
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="BEFORE=AFTER",
    help="Compare these two scopes, whatever they are called; repeat for more.",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Changes to list (default 8).")
@click.option("--all-scopes", is_flag=True, help="List every scope, also those of frameworks and modules.")
@gate_options("never")
@max_memory_option
@debug_option
def diff(  # noqa: PLR0917  # click passes all by name
    before: str,
    after: str,
    output_format: str | None,
    output: Path | None,
    scopes: tuple[str, ...],
    top: int | None,
    all_scopes: bool,
    fail_on: str,
    strict: bool,
    max_memory: int | None,
) -> int:
    """Say what changed from BEFORE to AFTER: slower, faster, gone, new, and why.

    Each is a trace (or a folder of traces: the newest is taken; one of them may be - for standard input).
    Environments are compared first: times of another GPU, driver, CUDA, cuDNN or PyTorch do not compare. A
    difference within the spread of the calls is the same within noise.

    Exit codes: 0 fine; 1 slower beyond noise (a warning), or a finding that is new or grew, at or above
    --fail-on; 2 a trace cannot be read; 3 with --strict, a file is damaged or something cannot be told.
    """
    picked = common.pick_format(output_format, output)
    refuse_to_overwrite(output, Path(before), Path(after))
    refuse_file_for_github(picked, output)
    if before == after == "-":
        raise click.UsageError("standard input can be one of the traces, not both")
    looks = _both_examined((before, after), max_memory)
    sources = [
        common.shown_trace(source, look.facts.tree.trace.label)
        for source, look in zip((before, after), looks, strict=True)
    ]
    compared = _compared(looks, scopes)
    if picked == "github":
        common.emit_github(*_for_github(compared, sources, top=top))
    else:
        common.emit(_rendered(compared, picked, output, sources, top=top, all_scopes=all_scopes), output)
    code, why = _code(compared, fail_on, strict=strict)
    if code != common.FINE:
        common.note(f"exit {code}: {why}")
    return code


def _both_examined(sources: Sequence[str], max_memory: int | None) -> list[Look]:
    """Examine one after the other; what the first one holds, the second may not take."""
    from tracehunch.judge import examine  # noqa: PLC0415  # numpy and msgspec load only when a trace is looked at
    from tracehunch.trace.foresee import held_bytes  # noqa: PLC0415  # as above

    looks: list[Look] = []
    for source in sources:
        held = sum(held_bytes(look.facts.tree.trace) for look in looks)
        allowed = None if max_memory is None else max(max_memory - held, 1)  # what is free shrinks by itself
        looks.append(examine(common.read_trace(source, allowed)))
    return looks


def _compared(looks: Sequence[Look], scopes: Sequence[str]) -> Diff:
    from tracehunch.compare import diff as compare  # noqa: PLC0415  # as above

    names = [{one.scope.name for one in look.facts.scopes} for look in looks]
    return compare(looks[0], looks[1], [_pair(scope, names) for scope in scopes])


def _pair(text: str, names: Sequence[set[str]]) -> tuple[str, str]:
    """Split ``BEFORE=AFTER``; where names hold the sign themselves, where both sides are known."""
    cuts = [(text[:at], text[at + 1 :]) for at, sign in enumerate(text) if sign == "="]
    if not cuts:
        raise click.UsageError(f"--scope {text}: write BEFORE=AFTER, the scope's name in each trace")
    known = [pair for pair in cuts if pair[0] in names[0] and pair[1] in names[1]]
    return (known or cuts)[0]


def _for_github(compared: Diff, sources: Sequence[str], *, top: int | None) -> tuple[str, str]:
    """Return the workflow commands, and the report for the step's summary."""
    from tracehunch.report import diff_markdown, github  # noqa: PLC0415  # loaded only where it is needed
    from tracehunch.report.diff_words import TOP  # noqa: PLC0415  # as above

    commands = github.render_diff(compared, sources=sources)
    return commands, diff_markdown.render(compared, sources=sources, top=top or TOP)


def _rendered(
    compared: Diff,
    picked: str,
    output: Path | None,
    sources: Sequence[str],
    *,
    top: int | None,
    all_scopes: bool,
) -> str | bytes:
    """Render in the format picked; a renderer is imported only when it is needed."""
    if picked == "json":
        from tracehunch.report import diff_json  # noqa: PLC0415  # as above

        return diff_json.render(compared)
    from tracehunch.report.diff_words import TOP  # noqa: PLC0415  # as above

    if picked == "html":
        from tracehunch.report.html import diff_page  # noqa: PLC0415  # as above

        return diff_page.render(compared, sources=sources, top=top or TOP, all_scopes=all_scopes)
    if picked == "markdown":
        from tracehunch.report import diff_markdown  # noqa: PLC0415  # as above

        return diff_markdown.render(compared, sources=sources, top=top or TOP, all_scopes=all_scopes)
    from tracehunch.report import diff_terminal  # noqa: PLC0415  # as above

    view = common.view(output)
    return diff_terminal.render(compared, view=view, sources=sources, top=top or TOP, all_scopes=all_scopes)


def _code(compared: Diff, fail_on: str, *, strict: bool) -> tuple[int, str]:
    """Return the exit code and why: damage first, since what it hides may be worse."""
    from tracehunch.verdict import SEVERITIES  # noqa: PLC0415  # as above

    if strict and (lost := _lost(compared)):
        return common.LOST, f"{lost} (--strict)"
    level = SEVERITIES.index
    failing = [
        one for one in compared.regressions if fail_on != "never" and level(one.severity) >= level(fail_on)
    ]
    if not failing and strict and compared.cannot_tell:
        return common.LOST, f"{_untold(compared)} (--strict)"
    if not failing:
        return common.FINE, ""
    worst = max(failing, key=lambda one: level(one.severity))
    more = f", and {len(failing) - 1} more" if len(failing) > 1 else ""
    return common.FOUND, f"{worst.text}{more} (--fail-on {fail_on})"


def _lost(compared: Diff) -> str:
    """Name the damage of either file; "" for sound ones."""
    codes = [
        f"{notice.code} {side}"
        for side, look in (("before", compared.before), ("after", compared.after))
        for notice in (*look.facts.tree.trace.notices, *look.facts.tree.notices)
        if notice.lossy
    ]
    return f"a file is damaged, or data was lost ({join(codes)})" if codes else ""


def _untold(compared: Diff) -> str:
    return f"{join([one.key for one in compared.cannot_tell])} cannot be told"
