"""A critical path as Markdown that GitHub renders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import critical_rows as rows
from tracehunch.report import summary
from tracehunch.report.cut import for_comment
from tracehunch.report.markdown import code, marker, table, text

if TYPE_CHECKING:
    from tracehunch.compare.critical import CriticalPath
    from tracehunch.verdict import Look


def render(look: Look, path: CriticalPath, *, source: str = "", top: int = rows.LONGEST) -> str:
    """Return the report, ending in a newline."""
    source = source or look.facts.tree.trace.label
    blocks = [
        marker("critical-path"),
        f"## tracehunch look --critical-path {code(source)}",
        table((("<", None), ("<", None)), [(k, text(v)) for k, v in summary.recorded_on(look)]),
        *path_blocks(path, top),
        f"Next: {code(rows.next_command(look, path, source))}",
    ]
    return for_comment("\n\n".join(blocks) + "\n")


def path_blocks(path: CriticalPath, top: int = rows.LONGEST) -> list[str]:
    """Return the sections."""
    kinds = [(r.share, r.time, text(r.kind), text(r.meaning)) for r in rows.kind_rows(path)]
    longest = [
        (r.share, r.time, r.stretches, text(r.kind), code(r.what), r.events)
        for r in rows.long_rows(path, top)
    ]
    answers = [(text(r.gain), r.time, text(r.title), text(r.then)) for r in rows.what_if_rows(path)]
    below = [rows.without_gain(path), rows.untold(path) and f"cannot tell {rows.untold(path)}", *path.notes]
    blocks = [
        f"### Critical path of {text(rows.title(path))}",
        text(rows.verdict(path)),
        table((("share", None), ("time", None), ("<kind", None), ("<what it is", None)), kinds),
        "### Longest on it",
        table(
            (
                ("share", None),
                ("time", None),
                ("times", None),
                ("<kind", None),
                ("<what", None),
                ("<events", None),
            ),
            longest,
        ),
        text(rows.rest(path, top)),
        "### What if",
        table((("gain", None), ("to", None), ("<if", None), ("<then mostly", None)), answers)
        if answers
        else "",
        "\n".join(f"- {text(one)}" for one in below if one),
    ]
    return [block for block in blocks if block]
