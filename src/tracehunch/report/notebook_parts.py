"""Pieces of HTML for notebooks: no script, no style sheet, colours of the page, all text escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from tracehunch.units import elide, printable, shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tracehunch.report.finding_texts import FindingText

_OUTER: Final = "font-size: 13px; line-height: 1.45; max-width: 72em; overflow-x: auto"
_CELL: Final = "padding: 1px 10px 1px 0; vertical-align: top"
DIM: Final = "opacity: .7"
_RULED: Final = "border-left: 3px solid; padding-left: 8px; margin: 6px 0"
_NAME: Final = 90  # characters of a name in a table
_WORDS: Final = frozenset({"scope", "launched by", "what it is", "limit", "name", "op"})


def outer(parts: Iterable[str]) -> str:
    """Return parts as one piece."""
    return f'<div style="{_OUTER}">{"".join(parts)}</div>'


def finding(one: FindingText) -> str:
    """Return a finding, its cause and fix folded."""
    where = f" in {name(one.scope)}" if one.scope else ""
    head = f"{escape(one.severity)} {bold(one.id)}{where}{' · ' if one.stake else ''}{escape(one.stake)}"
    lines = [(label, text) for label, text in (("cause", one.cause), ("fix", one.fix)) if text]
    told = "".join(f"<div><i>{label}</i> {escape(text)}</div>" for label, text in lines)
    about = f"<div>{escape(one.summary)}</div>"
    return ruled(head, f"{about}<details><summary>cause and fix</summary>{told}{dim(one.evidence)}</details>")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, words: Collection[str] = _WORDS) -> str:
    """Return a table; the columns of numbers, which are all but those of ``words``, stand to the right."""
    sides = ["left" if head in words else "right" for head in heads]
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


def section(title: str, parts: Sequence[str]) -> str:
    """Return parts under a title."""
    return f'<div style="margin-top: 8px">{bold(title)}</div>{"".join(parts)}'


def folded(title: str, inside: str, below: str) -> str:
    """Return what is opened by its title."""
    return f"<details><summary>{bold(title)}</summary>{inside}{dim(below)}</details>"


def ruled(head: str, inside: str) -> str:
    """Return a head and what belongs to it, with a rule beside them."""
    return f'<div style="{_RULED}"><div>{head}</div>{inside}</div>'


def bullets(items: Sequence[str]) -> str:
    """Return a list of ``<li>``."""
    return f'<ul style="margin: 2px 0">{"".join(items)}</ul>'


def dim(text: str) -> str:
    """Return a remark; nothing of an empty one."""
    return f'<div style="{DIM}">{escape(text)}</div>' if text else ""


def bold(text: str, tag: str = "span") -> str:
    """Return text in bold."""
    return f'<{tag} style="font-weight: 600">{escape(text)}</{tag}>'


def name(raw: str) -> str:
    """Return a name as code."""
    return f"<code>{escape(shorten(printable(raw), _NAME))}</code>"
