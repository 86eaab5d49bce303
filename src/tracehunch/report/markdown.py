"""A Look as Markdown that GitHub renders: the content of the terminal, for pull requests and issues."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tracehunch.report import finding_texts, kernel_rows, scope_rows, summary, verdict_text
from tracehunch.report.cut import for_comment
from tracehunch.report.summary import Selection
from tracehunch.units import printable, shorten
from tracehunch.verdict import Look, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from tracehunch.report.finding_texts import FindingText
    from tracehunch.report.kernel_rows import KernelRow, KernelTable, OpRow, OpTable
    from tracehunch.report.scope_rows import ScopeRow

    _Row = TypeVar("_Row")
    _Columns = tuple[tuple[str, Callable[[_Row], str]], ...]

# What Markdown, HTML or GitHub would act on. Entities work in text and in <code>; backslashes do not in both.
_ENTITIES: Final = str.maketrans(
    {mark: f"&#{ord(mark)};" for mark in "&<>|`*[]~\\$#"} | {"@": "&#64;<!-- -->"}
)
_EMPHASIS: Final = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")  # within a word GitHub leaves them alone
_NAME_LIMIT: Final = 160  # columns of a name in a table's cell


def render(look: Look, *, selection: Selection | None = None, source: str = "") -> str:
    """Return the report, ending in a newline: all of it, or what fits into a comment on GitHub."""
    selection = selection or Selection()
    source = source or look.facts.tree.trace.label
    verb = "look" if look.verdict == Verdict() else "check"
    blocks = [
        marker(verb),
        f"## tracehunch {verb} {code(source)}",
        table((("<", None), ("<", None)), [(k, text(v)) for k, v in summary.recorded_on(look)]),
    ]
    blocks += _warnings(look)
    blocks += _verdict(look.verdict)
    blocks += _findings(look, selection)
    blocks += _scopes(look, selection)
    blocks += [block for one in kernel_rows.kernel_tables(look, selection) for block in _kernels(one)]
    blocks += [block for one in kernel_rows.op_tables(look, selection) for block in _ops(one)]
    blocks.append(f"Next: {code(summary.next_command(look, source, selection))}")
    return for_comment("\n\n".join(blocks) + "\n")


def marker(verb: str) -> str:
    """Return a comment that nobody sees, by which a bot finds the comment of a pull request to update."""
    return f"<!-- tracehunch:{verb} -->"


def text(raw: str) -> str:
    """Any text so that it reads as it is: no markup, no HTML, no mention, no link, on one line."""
    safe = _EMPHASIS.sub("&#95;", printable(raw).translate(_ENTITIES))
    return safe.replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


def code(raw: str) -> str:
    """Return a name as code: a tag, since between backticks no entity works and a bar ends a cell."""
    return f"<code>{text(shorten(raw, _NAME_LIMIT)).replace('<!-- -->', '')}</code>"


def _warnings(look: Look) -> list[str]:
    notices = summary.notices(look)
    if not notices:
        return []
    return [
        "### Warnings",
        "\n".join(f"- **{text(notice.code)}**: {text(notice.message)}" for notice in notices),
    ]


def _verdict(verdict: Verdict) -> list[str]:
    if verdict == Verdict():
        return []
    lines = []
    for surprise in verdict.surprises:
        claim = f"{code(surprise.claim.key)} in {code(surprise.claim.scope)}"
        said = f"{verdict_text.surprise_text(surprise)}; {verdict_text.explained_text(surprise)}"
        lines.append(f"- **{surprise.severity}** {claim}: {text(said)}")
    lines += [
        f"- cannot tell: {text(finding_texts.cannot_tell_text(unknown))}" for unknown in verdict.cannot_tell
    ]
    lines += [f"- held: {text(held)}" for held in verdict_text.held_texts(verdict, most=None)]
    return [f"### Verdict: {verdict_text.tally(verdict)}", "\n".join(lines)]


def _findings(look: Look, selection: Selection) -> list[str]:
    found = finding_texts.findings(look, selection)
    untold = [f"- cannot tell: {text(one)}" for one in finding_texts.untold(look, selection)]
    head = f"### Findings: {finding_texts.findings_aside(found)}"
    chosen, more = finding_texts.shown(found, selection)
    told = [*(finding_block(one) for one in chosen), *([text(more)] if more else [])]
    return [head, *told, *(["\n".join(untold)] if untold else [])]


def finding_block(one: FindingText) -> str:
    """Return a finding in full as a block."""
    where = f" in {code(one.scope)}" if one.scope else ""
    stake = f", {text(one.stake)}" if one.stake else ""
    lines = [f"**{one.severity}** {code(one.id)}{where}{stake}", "", text(one.summary), ""]
    for label, said in (("cause", one.cause), ("fix", one.fix), ("evidence", one.evidence)):
        lines += [f"- {label}: {text(said)}"] if said else []
    return "\n".join(lines)


def _scopes(look: Look, selection: Selection) -> list[str]:
    shown, folded = scope_rows.shown_scopes(look, selection)
    columns = _SCOPE_COLUMNS if summary.has_gpu_work(look) else _CPU_SCOPE_COLUMNS
    listed = table(
        columns, [[cell(row) for _, cell in columns] for row in scope_rows.scope_rows(look, shown)]
    )
    return ["### Scopes, per call", listed, *([text(folded)] if folded else [])]


def _kernels(one: KernelTable) -> list[str]:
    title = f"<details><summary>Kernels in {code(one.scope)}, per call, by GPU time</summary>"
    listed = table(_KERNEL_COLUMNS, [[cell(row) for _, cell in _KERNEL_COLUMNS] for row in one.rows])
    below = [text(more) for more in (one.rest, one.unclassified, one.peaks) if more]
    return [title, listed, *below, "</details>"]


def _ops(one: OpTable) -> list[str]:
    per = ", per call" if one.calls > 1 else ""
    title = f"### Ops in {code(one.scope)}, by CPU time in themselves{per}"
    listed = table(_OP_COLUMNS, [[cell(row) for _, cell in _OP_COLUMNS] for row in one.rows])
    return [title, listed, *([text(one.rest)] if one.rest else [])]


def _name(row: ScopeRow) -> str:
    name = row.name.lstrip()
    return "&nbsp;" * (len(row.name) - len(name)) + code(name)


# Heading (one that begins with < stands left) and cell, which is Markdown already.
_SCOPE_COLUMNS: Final[_Columns[ScopeRow]] = (
    ("<scope", _name),
    ("calls", lambda row: row.calls),
    ("kernels", lambda row: row.kernels),
    ("copies", lambda row: row.copies),
    ("memsets", lambda row: row.memsets),
    ("GPU time", lambda row: row.gpu_time),
    ("CPU time", lambda row: row.cpu_time),
    ("wall", lambda row: row.wall_time),
    ("GPU idle", lambda row: text(row.gpu_idle)),
    ("<what runs", lambda row: text(row.traits)),
    ("<limit", lambda row: text(row.limit)),
    ("<calls differ", lambda row: text(row.spread)),
)
_CPU_SCOPE_COLUMNS: Final[_Columns[ScopeRow]] = (
    ("<scope", _name),
    ("calls", lambda row: row.calls),
    ("leaf ops", lambda row: row.leaf_ops),
    ("CPU time", lambda row: row.cpu_time),
    ("wall", lambda row: row.wall_time),
    ("<what runs", lambda row: text(row.traits)),
    ("<calls differ", lambda row: text(row.spread)),
)
_KERNEL_COLUMNS: Final[_Columns[KernelRow]] = (
    ("share", lambda row: text(row.share)),
    ("time", lambda row: row.time),
    ("runs", lambda row: row.per_call),
    ("occupancy", lambda row: text(row.occupancy)),
    ("<limit", lambda row: text(row.limit)),
    ("<launched by", lambda row: code(row.op)),
    ("<what it is", lambda row: text(row.what)),
    ("<name", lambda row: code(row.name)),
)
_OP_COLUMNS: Final[_Columns[OpRow]] = (
    ("share", lambda row: text(row.share)),
    ("self", lambda row: row.self_time),
    ("total", lambda row: row.total_time),
    ("calls", lambda row: row.calls),
    ("<op", lambda row: code(row.op)),
)


def table(columns: Sequence[tuple[str, object]], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; a heading that begins with < stands left."""
    heads = [head.removeprefix("<") for head, _ in columns]
    rule = ["---" if head.startswith("<") else "---:" for head, _ in columns]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *rows))
