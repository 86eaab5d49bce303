"""Markdown cut to what GitHub takes, and said so."""

from __future__ import annotations

from typing import Final

from tracehunch.units import count

COMMENT_LIMIT: Final = 65_536
"""Characters of a comment."""

SUMMARY_LIMIT: Final = 1 << 20
"""Bytes of a step's summary, of all commands of the step together."""

_SAID: Final = 240  # for what is said about the cut


def for_comment(report: str) -> str:
    """Return a report that fits into a comment; those of emoji count as two, for safety."""
    return _cut(report, COMMENT_LIMIT, f"the {COMMENT_LIMIT:,} characters of a comment", "utf-16-le", 2)


def for_summary(report: str, room: int) -> str:
    """Return a report that fits into the `room` bytes that a step's summary has left; "" where none do."""
    return _cut(report, room, f"the {SUMMARY_LIMIT >> 20} MiB of a step's summary", "utf-8", 1)


def _cut(report: str, limit: int, limit_text: str, encoding: str, width: int) -> str:
    """Keep as many whole lines as fit, close what they leave open, and say how many are gone."""
    if len(report.encode(encoding)) <= limit * width:
        return report
    lines = report.splitlines()
    kept: list[str] = []
    room = limit - _SAID
    for line in lines:
        room -= len(line.encode(encoding)) // width + 1
        if room < 0:
            break
        kept.append(line)
    if not kept:
        return ""
    n_open = sum(line.count("<details>") - line.count("</details>") for line in kept)
    lost = f"{count(len(lines) - len(kept))} of {count(len(lines))} lines do not fit into {limit_text}"
    said = f"**Cut here**: {lost}; a report as HTML or JSON holds all."
    return "\n".join([*kept, *(["\n</details>"] * n_open), "", said, ""])
