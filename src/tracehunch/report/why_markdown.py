"""Why each SDPA call of a trace ran on its backend, as Markdown that GitHub renders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report.markdown import code, text
from tracehunch.report.why import entries_of, next_command, nothing
from tracehunch.report.why_entries import settings, tally

if TYPE_CHECKING:
    from tracehunch.predict.traced import Explained
    from tracehunch.report.why_entries import Entry
    from tracehunch.tree import Tree


def render(explained: Explained, tree: Tree, *, source: str) -> str:
    """Return the whole report, ending in a newline."""
    told = entries_of(explained, tree)
    blocks = [f"## Why SDPA ran what it did: {code(source)}"]
    blocks += [text(setting) for setting in settings(explained)]
    blocks.append(text(tally(explained) if explained.groups else nothing(tree)))
    blocks += [_entry(entry) for entry in told]
    blocks.append(f"Next: {code(next_command(told, source))}")
    return "\n\n".join(blocks) + "\n"


def _entry(entry: Entry) -> str:
    lines = [f"### {entry.group.verdict}: {text(entry.headline)}", ""]
    if entry.call:
        lines += [text(entry.call), ""]
    lines += [text(entry.time), ""]
    lines += [f"- **{label}**: {text(said)}" for label, said in entry.lines]
    for known in entry.hazards:
        some = f" ({known.versions})" if known.versions else ""
        said = f"{known.hazard.words}{some}; {known.hazard.todo}"
        lines.append(f"- **{known.severity}**: {text(said)} ({known.hazard.links[0]})")
    return "\n".join(lines).rstrip()
