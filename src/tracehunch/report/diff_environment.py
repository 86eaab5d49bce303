"""What two traces were recorded on and with, and what a reader must know before they trust the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.units import join, plural, printable, size

if TYPE_CHECKING:
    from tracehunch.compare.environment import Entry
    from tracehunch.compare.model import Diff
    from tracehunch.verdict import Look

_ENTRIES: Final = 8
_OUTSIDE: Final = "outside-window"
_FOLDER: Final = "other-traces"

_SAME: Final = (
    "GPU", "CPU", "CPU threads", "driver", "CUDA runtime", "HIP runtime", "cuDNN", "torch", "Triton", "NCCL",
)  # fmt: skip
"""What is told even where it is the same; the rest follows from it, or is told where it differs."""

_UNITS: Final = {
    "highest SM clock": "MHz",
    "SM clock": "MHz",
    "power limit": "W",
}


def environment_lines(diff: Diff) -> list[tuple[str, str]]:
    """Return label and text of what is the same, differs, is set otherwise, or is unknown."""
    found = diff.environment
    same = [_entry_text(entry) for entry in found.same if entry.name in _SAME]
    lines = [("same", ", ".join(same)), ("differs", ", ".join(_both(entry) for entry in found.deciding))]
    settings = [_both(entry) for entry in found.settings]
    more = f" and {len(settings) - _ENTRIES} more" if len(settings) > _ENTRIES else ""
    lines.append(("settings", ", ".join(settings[:_ENTRIES]) + more))
    lines.append(("unknown", _unknown(diff)))
    return [(label, text) for label, text in lines if text]


def warnings(diff: Diff) -> list[str]:
    """Return what keeps the numbers from being compared as they are: environments, then damage."""
    found = []
    if names := [printable(entry.name) for entry in diff.environment.deciding]:
        verb = "differs" if len(names) == 1 else "differ"
        found.append(f"{join(names)} {verb}: times do not compare, and other kernels may run for that alone")
    for side, codes in _lost(diff).items():
        if set(codes) - {_OUTSIDE}:
            found.append(f"the trace {side} is not whole: {join(codes)} (tracehunch look tells more)")
    return found


def notes(diff: Diff) -> list[str]:
    """Return remarks on how the traces were recorded and matched."""
    outside = [side for side, codes in _lost(diff).items() if codes == [_OUTSIDE]]
    whose = f"the trace {outside[0]}" if len(outside) == 1 else "both traces"
    verb = "holds" if len(outside) == 1 else "hold"
    left_out = f"{whose} {verb} GPU work launched outside the recording; it is left out of all scopes"
    folders = [
        f"{side}: {printable(notice.message)}"
        for side, look in (("before", diff.before), ("after", diff.after))
        for notice in look.facts.tree.trace.notices
        if notice.code == _FOLDER
    ]
    return [*folders, *([left_out] if outside else []), *(printable(note) for note in diff.notes)]


def _lost(diff: Diff) -> dict[str, list[str]]:
    """Return per side the codes of what the file lost."""
    trees = {"before": diff.before.facts.tree, "after": diff.after.facts.tree}
    return {
        side: [notice.code for notice in (*tree.trace.notices, *tree.notices) if notice.lossy]
        for side, tree in trees.items()
    }


def _both(entry: Entry) -> str:
    return f"{printable(entry.name)} {_value(entry, entry.before)} -> {_value(entry, entry.after)}"


def _entry_text(entry: Entry) -> str:
    value = _value(entry, entry.before)
    return value if entry.name in ("GPU", "CPU") else f"{entry.name} {value}"


def _value(entry: Entry, value: str) -> str:
    if entry.name == "GPU memory" and value.isdigit():
        return size(int(value))
    unit = f" {_UNITS[entry.name]}" if entry.name in _UNITS and value else ""
    return f"{printable(value, 80)}{unit}" or "unknown"


def _unknown(diff: Diff) -> str:
    found = diff.environment
    if not found.same_kind:
        return ""
    parts = []
    if both := found.unknown("unknown"):
        parts.append(f"{join(both)}: neither trace says {'them' if len(both) > 1 else 'it'}")
    if first := found.unknown("unknown before"):
        parts.append(f"{join(first)} before")
    if second := found.unknown("unknown after"):
        parts.append(f"{join(second)} after")
    return "; ".join(parts)


def source_text(look: Look, source: str) -> str:
    """Name a trace with what it holds: ``naive.json.gz: 3 steps, 23 GPU activities``."""
    trace = look.facts.tree.trace
    steps = look.facts.counts.get("n_steps")
    parts = [plural(steps, "step")] if isinstance(steps, int) and steps else []
    parts.append(
        plural(len(trace.gpu.row), "GPU activity", "GPU activities")
        if len(trace.gpu.row)
        else "no GPU activity"
    )
    return f"{printable(source)}  ({', '.join(parts)})"
