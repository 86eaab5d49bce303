"""Why each SDPA call of a trace ran on its backend, for a terminal: the surprises first."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from tracehunch.kernels import classify
from tracehunch.predict.traced import triangles
from tracehunch.report.finding_texts import SEVERITY_STYLE
from tracehunch.report.layout import Line, Span, Style, View, draw, paragraph
from tracehunch.report.why_entries import entries, settings, tally
from tracehunch.trace.model import Cat
from tracehunch.tree import Api
from tracehunch.units import elide, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.predict.traced import Explained, Group, Verdict
    from tracehunch.report.why_entries import Entry
    from tracehunch.tree import Tree

_STYLES: Final[dict[Verdict, Style]] = {
    "surprise": "bold yellow",
    "depends": "yellow",
    "as predicted": "green",
    "cannot tell": "bold",
}
_WHOLE: Final = re.compile(r"aten::_(?:native_multi_head_attention|transformer_encoder_layer_fwd)|flash_attn")
_NAME: Final = 60  # characters of an op or a kernel
_LABELS: Final = 11
"""Columns of the labels: ``cannot tell``."""
_SHOWN: Final = 12
"""Entries; a model has a few kinds of attention."""


def render(explained: Explained, tree: Tree, *, view: View, source: str) -> str:
    """Return the report as text; ``source`` is what the user calls the trace."""
    told = entries_of(explained, tree)
    lines: list[Line] = [(Span(f"Why SDPA ran what it did: {printable(source)}", "bold"),)]
    for setting in settings(explained):
        lines += paragraph(setting, view, style="dim")
    lines += paragraph(tally(explained) if explained.groups else nothing(tree), view)
    for entry in told[:_SHOWN]:
        lines += _entry(entry, view)
    if len(told) > _SHOWN:
        lines += [(), (Span(f"{len(told) - _SHOWN} more kinds of call; --format json lists all", "dim"),)]
    lines += [(), (Span("Next: ", "dim"), next_command(told, source))]
    return draw(lines, view)


def entries_of(explained: Explained, tree: Tree) -> list[Entry]:
    """Return the entries of a trace."""
    backward = any("attention_backward" in name for name in tree.trace.names)
    return entries(explained, triangles(tree), backward=backward)


def nothing(tree: Tree) -> str:
    """Say that there is no call to explain, and what there is."""
    if not tree.ops.size and not _replays(tree):
        return "The trace has no ops, so no call of scaled_dot_product_attention: record CPU activities, too."
    return f"No call of scaled_dot_product_attention was recorded.{_instead(tree)}"


def _instead(tree: Tree) -> str:
    """Say how attention runs that no dispatcher picks."""
    trace = tree.trace
    ops = {trace.names[name] for name in set(trace.name[tree.ops].tolist())}
    gpu = trace.gpu.row[trace.cat[trace.gpu.row] == Cat.KERNEL]
    kernels = sorted(trace.names[name] for name in set(trace.name[gpu].tolist()))
    whole = [name for name in sorted(ops) if _WHOLE.search(name)]
    attention = [name for name in kernels if classify(name).algorithm.startswith("attention")]
    if whole:
        return f" Attention runs inside {printable(whole[0], _NAME)}, which asks no dispatcher."
    if attention:
        graph = " in a CUDA graph's replay: its backend was picked when it was captured"
        where = graph if _replays(tree) else ""
        return f" Attention runs as {elide(printable(attention[0]), _NAME)}{where}."
    if {"aten::bmm", "aten::_softmax"} <= ops:
        return " If there is attention, it is made of matrix products and softmax."
    return ""


def _replays(tree: Tree) -> bool:
    return bool((tree.api == Api.GRAPH).any())


def next_command(told: Sequence[Entry], source: str) -> str:
    """Return the next command to type."""
    named = "TRACE" if source == "-" else shlex.quote(printable(source))
    if any(_asks_for_torch(one.group) for one in told):
        return f"tracehunch guess --why {named} --torch VERSION"
    if any(one.hazards for one in told):
        return "tracehunch explain sdpa-known-hazard"
    if any(one.group.ran == "math" for one in told):
        return "tracehunch explain sdpa-math-fallback"
    return f"tracehunch look {named}"


def _asks_for_torch(group: Group) -> bool:
    """Whether some version settles what another leaves open."""
    if group.verdict != "depends" or group.setting.sure:
        return False
    fits: dict[str, set[bool]] = {}
    fitting = {id(case) for case in group.fitting}
    for case in group.cases:
        fits.setdefault(case.env.torch_name, set()).add(id(case) in fitting)
    return len({frozenset(one) for one in fits.values()}) > 1


def _entry(entry: Entry, view: View) -> list[Line]:
    verdict = entry.group.verdict
    first: Line = (Span(verdict, _STYLES[verdict]), "  ")
    lines: list[Line] = [(), *paragraph(entry.headline, view, first=first, indent=4)]
    if entry.call:
        lines += paragraph(entry.call, view, first=("  ",), indent=4)
    lines += paragraph(entry.time, view, first=("  ",), indent=4, style="dim")
    last = ""
    for label, text in entry.lines:
        shown = "" if label == last else label
        lead: Line = ("  ", Span(f"{shown:<{_LABELS}}", "cyan"), "  ")
        lines += paragraph(text, view, first=lead, indent=_LABELS + 4)
        last = label
    for known in entry.hazards:
        lead = ("  ", Span(f"{known.severity:<{_LABELS}}", SEVERITY_STYLE[known.severity]), "  ")
        some = f" ({known.versions})" if known.versions else ""
        text = f"{known.hazard.words}{some}; {known.hazard.todo} {known.hazard.links[0]}"
        lines += paragraph(text, view, first=lead, indent=_LABELS + 4)
    return lines
