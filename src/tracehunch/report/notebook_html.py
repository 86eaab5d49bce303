"""A Look or a Verdict as a piece of HTML for notebooks: no script, no style sheet, colours of the page.

Everything that a trace or a user wrote is escaped. Styles stand in the elements, since viewers that do not
trust a notebook take style sheets out; without any style it still reads.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from tracehunch.report import finding_texts, kernel_rows, scope_rows, summary, verdict_text
from tracehunch.report.summary import Selection
from tracehunch.units import elide, printable, shorten, time_us
from tracehunch.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tracehunch.report.finding_texts import FindingText
    from tracehunch.report.scope_rows import ScopeRow
    from tracehunch.verdict import CannotTell, Look, Surprise

_OUTER: Final = "font-size: 13px; line-height: 1.45; max-width: 72em; overflow-x: auto"
_CELL: Final = "padding: 1px 10px 1px 0; vertical-align: top"
_DIM: Final = "opacity: .7"
_RULED: Final = "border-left: 3px solid; padding-left: 8px; margin: 6px 0"
_NAME: Final = 90  # characters of a name in a table
_KERNELS: Final = 10
_GPU_SCOPES: Final[tuple[tuple[str, Callable[[ScopeRow], str]], ...]] = (
    ("scope", lambda row: row.name),
    ("calls", lambda row: row.calls),
    ("kernels", lambda row: row.kernels),
    ("copies", lambda row: row.copies),
    ("memsets", lambda row: row.memsets),
    ("GPU time", lambda row: row.gpu_time),
    ("wall", lambda row: row.wall_time),
    ("GPU idle", lambda row: row.gpu_idle),
)
_CPU_SCOPES: Final[tuple[tuple[str, Callable[[ScopeRow], str]], ...]] = (
    ("scope", lambda row: row.name),
    ("calls", lambda row: row.calls),
    ("leaf ops", lambda row: row.leaf_ops),
    ("CPU time", lambda row: row.cpu_time),
    ("wall", lambda row: row.wall_time),
)


def look_html(look: Look, source: str = "") -> str:
    """Return the report: verdict and findings in full, the tables folded. ``source`` names the trace."""
    selection = Selection(top=_KERNELS)
    parts = [_b(printable(source or look.facts.tree.trace.label), "div"), _recorded(look)]
    parts += [_warnings(look), _verdict(look.verdict), _findings(look, selection)]
    parts += [_scopes(look, selection), *_kernels(look, selection), *_ops(look, selection)]
    return _outer(parts)


def verdict_html(verdict: Verdict) -> str:
    """Return the three outcomes: surprises first, then what could not be told, then what held."""
    return _outer([_verdict(verdict) or "nothing was claimed"])


def _outer(parts: Iterable[str]) -> str:
    return f'<div style="{_OUTER}">{"".join(parts)}</div>'


def _verdict(verdict: Verdict) -> str:
    if verdict == Verdict():
        return ""
    told = [_surprise(one) for one in verdict.surprises]
    told += [_untold(one) for one in verdict.cannot_tell]
    held = [f"<li>{escape(text)}</li>" for text in verdict_text.held_texts(verdict, most=None)]
    if held:
        opened = "" if told else " open"
        told.append(f"<details{opened}><summary>✓ held: {len(held)}</summary>{_list(held)}</details>")
    return _section(f"Verdict: {verdict_text.tally(verdict)}", told)


def _surprise(surprise: Surprise) -> str:
    stake = surprise.time_at_stake_us
    head = f"✗ {escape(surprise.severity)} {_b(surprise.claim.key)} in {_name(surprise.claim.scope)}"
    head += f" · {escape(time_us(stake))} a call at stake" if stake else ""
    said = [verdict_text.surprise_text(surprise), verdict_text.explained_text(surprise)]
    return _ruled(head, "".join(f"<div>{escape(text)}</div>" for text in said))


def _untold(unknown: CannotTell) -> str:
    return _ruled("? cannot tell", escape(finding_texts.cannot_tell_text(unknown)))


def _findings(look: Look, selection: Selection) -> str:
    found = finding_texts.findings(look, selection)
    chosen, more = finding_texts.shown(found, selection)
    told = [_finding(one) for one in chosen]
    told += [_dim(text) for text in ([more] if more else [])]
    told += [_dim(f"cannot tell: {text}") for text in finding_texts.untold(look, selection)]
    return _section(f"Findings: {finding_texts.findings_aside(found)}", told)


def _finding(one: FindingText) -> str:
    where = f" in {_name(one.scope)}" if one.scope else ""
    head = f"{escape(one.severity)} {_b(one.id)}{where}{' · ' if one.stake else ''}{escape(one.stake)}"
    lines = [(label, text) for label, text in (("cause", one.cause), ("fix", one.fix)) if text]
    told = "".join(f"<div><i>{label}</i> {escape(text)}</div>" for label, text in lines)
    about = f"<div>{escape(one.summary)}</div>"
    return _ruled(
        head, f"{about}<details><summary>cause and fix</summary>{told}{_dim(one.evidence)}</details>"
    )


def _scopes(look: Look, selection: Selection) -> str:
    shown, folded = scope_rows.shown_scopes(look, selection)
    rows = scope_rows.scope_rows(look, shown)
    on_gpu = summary.has_gpu_work(look)
    columns = _GPU_SCOPES if on_gpu else _CPU_SCOPES
    cells = [[cell(row) for _, cell in columns] for row in rows]
    return _folded("Scopes, per call (median)", _table([head for head, _ in columns], cells), folded)


def _kernels(look: Look, selection: Selection) -> list[str]:
    heads = ("share", "time", "runs", "launched by", "what it is", "limit", "name")
    return [
        _folded(
            f"Kernels in {one.scope}, by GPU time",
            _table(heads, [(r.share, r.time, r.per_call, r.op, r.what, r.limit, r.name) for r in one.rows]),
            one.rest.partition(";")[0],
        )
        for one in kernel_rows.kernel_tables(look, selection)
    ]


def _ops(look: Look, selection: Selection) -> list[str]:
    heads = ("share", "self", "total", "calls", "op")
    return [
        _folded(
            f"Ops in {one.scope}, by CPU time in themselves",
            _table(heads, [(r.share, r.self_time, r.total_time, r.calls, r.op) for r in one.rows]),
            one.rest.partition(";")[0],
        )
        for one in kernel_rows.op_tables(look, selection)
    ]


def _recorded(look: Look) -> str:
    lines = [f"{escape(label)} {escape(text)}" for label, text in summary.recorded_on(look)]
    first, rest = lines[0], "".join(f"<div>{line}</div>" for line in lines[1:])
    return f'<details style="{_DIM}"><summary>{first}</summary>{rest}</details>'


def _warnings(look: Look) -> str:
    notices = summary.notices(look)
    told = [f"<li>! {escape(notice.code)}: {escape(notice.message)}</li>" for notice in notices]
    return _section("Warnings about the file", [_list(told)]) if told else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; the cells of numbers, which are all but names and remarks, stand to the right."""
    left = {"scope", "launched by", "what it is", "limit", "name", "op"}
    sides = ["left" if head in left else "right" for head in heads]
    head = "".join(_cell("th", one, side) for one, side in zip(heads, sides, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell('td', one, side) for one, side in zip(row, sides, strict=True))}</tr>"
        for row in rows
    )
    return f'<table style="font-size: inherit"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(tag: str, text: str, side: str) -> str:
    shown = escape(elide(text, _NAME)).replace("  ", "&nbsp;&nbsp;")
    whole = f' title="{escape(text)}"' if len(text) > _NAME else ""
    style = f"{_CELL}; text-align: {side}{'; white-space: nowrap' if side == 'right' else ''}"
    return f'<{tag} style="{style}"{whole}>{shown}</{tag}>'


def _section(title: str, parts: Sequence[str]) -> str:
    return f'<div style="margin-top: 8px">{_b(title)}</div>{"".join(parts)}'


def _folded(title: str, inside: str, below: str) -> str:
    return f"<details><summary>{_b(title)}</summary>{inside}{_dim(below)}</details>"


def _ruled(head: str, inside: str) -> str:
    return f'<div style="{_RULED}"><div>{head}</div>{inside}</div>'


def _list(items: Sequence[str]) -> str:
    return f'<ul style="margin: 2px 0">{"".join(items)}</ul>'


def _dim(text: str) -> str:
    return f'<div style="{_DIM}">{escape(text)}</div>' if text else ""


def _b(text: str, tag: str = "span") -> str:
    return f'<{tag} style="font-weight: 600">{escape(text)}</{tag}>'


def _name(raw: str) -> str:
    return f"<code>{escape(shorten(printable(raw), _NAME))}</code>"
