"""A Look or a Verdict as a piece of HTML for notebooks: no script, no style sheet, colours of the page.

Everything that a trace or a user wrote is escaped. Styles stand in the elements, since viewers that do not
trust a notebook take style sheets out; without any style it still reads.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from tracehunch.report import finding_texts, kernel_rows, scope_rows, summary, verdict_text
from tracehunch.report.notebook_parts import (
    DIM,
    bold,
    bullets,
    dim,
    finding,
    folded,
    name,
    outer,
    ruled,
    section,
    table,
)
from tracehunch.report.summary import Selection
from tracehunch.units import printable, time_us
from tracehunch.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.report.scope_rows import ScopeRow
    from tracehunch.verdict import CannotTell, Look, Surprise

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
    parts = [bold(printable(source or look.facts.tree.trace.label), "div"), _recorded(look)]
    parts += [_warnings(look), _verdict(look.verdict), _findings(look, selection)]
    parts += [_scopes(look, selection), *_kernels(look, selection), *_ops(look, selection)]
    return outer(parts)


def verdict_html(verdict: Verdict) -> str:
    """Return the three outcomes: surprises first, then what could not be told, then what held."""
    return outer([_verdict(verdict) or "nothing was claimed"])


def _verdict(verdict: Verdict) -> str:
    if verdict == Verdict():
        return ""
    told = [_surprise(one) for one in verdict.surprises]
    told += [_untold(one) for one in verdict.cannot_tell]
    held = [f"<li>{escape(text)}</li>" for text in verdict_text.held_texts(verdict, most=None)]
    if held:
        opened = "" if told else " open"
        told.append(f"<details{opened}><summary>✓ held: {len(held)}</summary>{bullets(held)}</details>")
    return section(f"Verdict: {verdict_text.tally(verdict)}", told)


def _surprise(surprise: Surprise) -> str:
    stake = surprise.time_at_stake_us
    head = f"✗ {escape(surprise.severity)} {bold(surprise.claim.key)} in {name(surprise.claim.scope)}"
    head += f" · {escape(time_us(stake))} a call at stake" if stake else ""
    said = [verdict_text.surprise_text(surprise), verdict_text.explained_text(surprise)]
    return ruled(head, "".join(f"<div>{escape(text)}</div>" for text in said))


def _untold(unknown: CannotTell) -> str:
    return ruled("? cannot tell", escape(finding_texts.cannot_tell_text(unknown)))


def _findings(look: Look, selection: Selection) -> str:
    found = finding_texts.findings(look, selection)
    chosen, more = finding_texts.shown(found, selection)
    told = [finding(one) for one in chosen]
    told += [dim(text) for text in ([more] if more else [])]
    told += [dim(f"cannot tell: {text}") for text in finding_texts.untold(look, selection)]
    return section(f"Findings: {finding_texts.findings_aside(found)}", told)


def _scopes(look: Look, selection: Selection) -> str:
    shown, rest = scope_rows.shown_scopes(look, selection)
    rows = scope_rows.scope_rows(look, shown)
    on_gpu = summary.has_gpu_work(look)
    columns = _GPU_SCOPES if on_gpu else _CPU_SCOPES
    cells = [[cell(row) for _, cell in columns] for row in rows]
    return folded("Scopes, per call (median)", table([head for head, _ in columns], cells), rest)


def _kernels(look: Look, selection: Selection) -> list[str]:
    heads = ("share", "time", "runs", "launched by", "what it is", "limit", "name")
    return [
        folded(
            f"Kernels in {one.scope}, by GPU time",
            table(heads, [(r.share, r.time, r.per_call, r.op, r.what, r.limit, r.name) for r in one.rows]),
            one.rest.partition(";")[0],
        )
        for one in kernel_rows.kernel_tables(look, selection)
    ]


def _ops(look: Look, selection: Selection) -> list[str]:
    heads = ("share", "self", "total", "calls", "op")
    return [
        folded(
            f"Ops in {one.scope}, by CPU time in themselves",
            table(heads, [(r.share, r.self_time, r.total_time, r.calls, r.op) for r in one.rows]),
            one.rest.partition(";")[0],
        )
        for one in kernel_rows.op_tables(look, selection)
    ]


def _recorded(look: Look) -> str:
    lines = [f"{escape(label)} {escape(text)}" for label, text in summary.recorded_on(look)]
    first, rest = lines[0], "".join(f"<div>{line}</div>" for line in lines[1:])
    return f'<details style="{DIM}"><summary>{first}</summary>{rest}</details>'


def _warnings(look: Look) -> str:
    notices = summary.notices(look)
    told = [f"<li>! {escape(notice.code)}: {escape(notice.message)}</li>" for notice in notices]
    return section("Warnings about the file", [bullets(told)]) if told else ""
