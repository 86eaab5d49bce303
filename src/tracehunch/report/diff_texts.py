"""The parts of a comparison around its changes: environments, scopes, findings, what cannot be told."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.report.diff_words import DETAILED, relative, times_text, wall_compares
from tracehunch.report.verdict_text import value_text
from tracehunch.units import count, join, plural, printable, size, time_range_us, time_us
from tracehunch.verdict import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.environment import Entry
    from tracehunch.compare.model import Diff, FactChange, ScopeDiff
    from tracehunch.verdict import Finding, Look

_TOLD: Final = (
    "leaf_ops", "launches", "memsets", "copy_kernels", "syncs", "allocations", "graph", "compiled.recompiles",
    "sdpa.backend", "dtype", "tensor_cores", "bound",
)  # fmt: skip
"""Facts worth a word below a scope's row where they differ."""

_WIDE: Final = 1.25  # highest over lowest call from which on the spread is told
_MOVED: Final = 1.05  # medians that are further apart, and yet the same within it
_MODULES: Final = 4
_ROWS: Final = 10  # scopes listed unasked
_ENTRIES: Final = 8


@dataclass(frozen=True, slots=True)
class ScopeText:
    """One pair of scopes as cells: ``before -> after`` where both differ."""

    name: str
    calls: str
    kernels: str
    copies: str
    time: str
    change: str
    wall: str
    wall_change: str
    remarks: tuple[str, ...]


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


_SAME: Final = (
    "GPU", "CPU", "CPU threads", "driver", "CUDA runtime", "HIP runtime", "cuDNN", "torch", "Triton", "NCCL",
)  # fmt: skip
"""What is told even where it is the same; the rest follows from it, or is told where it differs."""

_UNITS: Final = {
    "highest SM clock": "MHz",
    "SM clock": "MHz",
    "power limit": "W",
}


def warnings(diff: Diff) -> list[str]:
    """Return what a reader must know before they trust the numbers: environments, then damage, then notes."""
    found = []
    if names := [printable(entry.name) for entry in diff.environment.deciding]:
        verb = "differs" if len(names) == 1 else "differ"
        found.append(f"{join(names)} {verb}: times do not compare, and other kernels may run for that alone")
    for side, look in (("before", diff.before), ("after", diff.after)):
        tree = look.facts.tree
        lossy = [notice.code for notice in (*tree.trace.notices, *tree.notices) if notice.lossy]
        if lossy:
            found.append(f"the trace {side} is not whole: {join(lossy)} (tracehunch look tells more)")
    return found + [printable(note) for note in diff.notes]


def is_note(diff: Diff, text: str) -> bool:
    """Whether a warning is only a remark on how the traces were matched or recorded."""
    return text in {printable(note) for note in diff.notes}


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


def scope_texts(diff: Diff, *, all_scopes: bool) -> tuple[list[ScopeText], str]:
    """Return the scopes to list, the user's own first, and how many are folded away.

    Frameworks' scopes are listed only with ``all_scopes``, and of modules those that moved most.
    """
    shown = [scope for scope in diff.scopes if all_scopes or scope.pair.after.scope.kind in DETAILED]
    if not all_scopes:
        shown = [scope for scope in shown if not _repeats(scope, shown)]
        if len(shown) > _ROWS:
            shown = [scope for scope in shown if scope.delta_us or scope.changes][:_ROWS]
        modules = [one for one in diff.scopes if one.pair.after.scope.kind == "module" and one.delta_us]
        shown += sorted(modules, key=lambda one: -abs(one.delta_us))[:_MODULES]
    n = len(diff.scopes) - len(shown)
    return [scope_text(diff, scope) for scope in shown], (
        f"{plural(n, 'scope')} folded; --all-scopes lists {'it' if n == 1 else 'them'}" if n else ""
    )


def _repeats(scope: ScopeDiff, others: Sequence[ScopeDiff]) -> bool:
    """Whether a step does what an annotation in it does, on both sides."""
    if scope.pair.after.scope.kind != "step" or scope.changes:
        return False
    own = _work(scope)
    return any(_work(other) == own for other in others if other.pair.after.scope.kind == "annotation")


def _work(scope: ScopeDiff) -> tuple[object, ...]:
    sides = scope.pair.before, scope.pair.after
    keys = ("kernels", "gpu_time", "launches", "leaf_ops")
    return tuple((len(side.scope.calls), *(side.value(key) for key in keys)) for side in sides)


def scope_text(diff: Diff, scope: ScopeDiff) -> ScopeText:
    """Return one pair of scopes as cells."""
    comparable = wall_compares(diff, scope)
    n_before, n_after = len(scope.pair.before.scope.calls), len(scope.pair.after.scope.calls)
    key = "gpu_time" if _is_told(scope.fact("gpu_time")) else "cpu_time"
    return ScopeText(
        name=printable(scope.pair.name),
        calls=_arrow(count(n_before), count(n_after)),
        kernels=_counts(scope.fact("kernels") or scope.fact("leaf_ops")),
        copies=_counts(scope.fact("copies")),
        time=_times(scope.fact(key)),
        change=_change(scope.fact(key)),
        wall=_times(scope.fact("wall_time")),
        wall_change=_change(scope.fact("wall_time")) if comparable else "does not compare",
        remarks=tuple(_remarks(scope)),
    )


def _remarks(scope: ScopeDiff) -> list[str]:
    on_gpu = _is_told(scope.fact("kernels"))
    keys = [key for key in _TOLD if key != "leaf_ops" or not on_gpu]
    facts = [fact for key in keys if (fact := scope.fact(key)) is not None]
    moved = [_fact_text(fact) for fact in facts if fact.outcome in ("more", "less", "other")]
    wide = [
        f"{words} {_spreads(fact)}"
        for key, words in (("gpu_time", "GPU time"), ("wall_time", "wall"))
        if (fact := scope.fact(key)) is not None and fact.outcome == "noise" and _is_wide(fact)
    ]
    return [text for text in (", ".join(moved), f"calls differ: {'; '.join(wide)}" if wide else "") if text]


def _fact_text(fact: FactChange) -> str:
    names = {
        "sdpa.backend": "SDPA", "dtype": "data type", "tensor_cores": "tensor cores",
        "graph": "graph replays", "copy_kernels": "copy kernels", "compiled.recompiles": "recompiles",
        "leaf_ops": "leaf ops",
    }  # fmt: skip
    values = [value_text(one.value, fact.unit) for one in (fact.before, fact.after) if one is not None]
    return f"{names.get(fact.key, fact.key)} {' -> '.join(values)}"


def _is_told(fact: FactChange | None) -> bool:
    return fact is not None and fact.before is not None and fact.after is not None


def _is_wide(fact: FactChange) -> bool:
    spreads = [(one.low, one.high) for one in (fact.before, fact.after) if one is not None]
    numbers = _numbers(fact) or (0, 0)
    moved = max(numbers) > _MOVED * min(numbers)
    return moved and any(low is not None and high is not None and high > _WIDE * low for low, high in spreads)


def _spreads(fact: FactChange) -> str:
    texts = [
        time_range_us(float(one.low), float(one.high))
        for one in (fact.before, fact.after)
        if one is not None and one.low is not None and one.high is not None
    ]
    return " before, ".join(texts) + " after"


def _numbers(fact: FactChange | None) -> tuple[float, float] | None:
    if fact is None or fact.before is None or fact.after is None:
        return None
    first, second = fact.before.value, fact.after.value
    return (first, second) if isinstance(first, int | float) and isinstance(second, int | float) else None


def _counts(fact: FactChange | None) -> str:
    numbers = _numbers(fact)
    return "" if numbers is None else _arrow(count(numbers[0]), count(numbers[1]))


def _times(fact: FactChange | None) -> str:
    numbers = _numbers(fact)
    if numbers is None:
        return ""
    return time_us(numbers[1]) if numbers[0] == numbers[1] else times_text(*numbers)


def _arrow(before: str, after: str) -> str:
    return after if before == after else f"{before} -> {after}"


def _change(fact: FactChange | None) -> str:
    numbers = _numbers(fact)
    if fact is None or numbers is None:
        return "cannot tell"
    if fact.outcome in ("same", "noise"):
        return "same"
    return relative(*numbers)


def finding_lines(diff: Diff) -> list[tuple[str, Finding, str]]:
    """Return (new, gone or grown; the finding; how much) for what matters, and in the order of that."""
    rows = [("new", one, "") for one in diff.new]
    rows += [
        ("grown", change.after, _grown(change.before, change.after)) for change in diff.grown if change.after
    ]
    rows += [("gone", one, "") for one in diff.gone]
    return [row for row in rows if _matters(row[1])]


def folded_notes(diff: Diff) -> str:
    """Count the notes that cost nothing: they come and go with the kernels they are about."""
    folded = [one for one in (*diff.new, *diff.gone) if not _matters(one)]
    return (
        f"{plural(len(folded), 'note')} without time at stake came or went; --format json lists all"
        if folded
        else ""
    )


def findings_aside(diff: Diff) -> str:
    """``1 new, 2 gone``; ``none``."""
    rows = [what for what, _, _ in finding_lines(diff)]
    return (
        ", ".join(f"{rows.count(what)} {what}" for what in ("new", "grown", "gone") if what in rows) or "none"
    )


def _matters(finding: Finding) -> bool:
    return bool(finding.time_at_stake_us) or finding.severity != "note"


def _grown(before: Finding | None, after: Finding) -> str:
    if before is None:
        return ""
    if before.per_call != after.per_call:
        return f"{count(before.per_call)} -> {count(after.per_call)} a call"
    return f"{time_us(before.time_at_stake_us)} -> {time_us(after.time_at_stake_us)}"


def unmatched(diff: Diff) -> list[str]:
    """Name the annotations that only one trace has."""
    found = []
    for side, scopes in (("before", diff.only_before), ("after", diff.only_after)):
        names = [printable(one.scope.name, 60) for one in scopes if one.scope.kind in ("annotation", "step")]
        if names:
            shown = join(names[:_ENTRIES]) + (
                f" and {len(names) - _ENTRIES} more" if len(names) > _ENTRIES else ""
            )
            found.append(f"only {side}: {shown}; --scope BEFORE=AFTER compares scopes of different names")
    return found


def next_command(diff: Diff, sources: Sequence[str]) -> str:
    """Return the next command to type: about what is new, else a closer look, else a baseline."""
    first, second = (_quoted(source) for source in sources)
    new = [one for what, one, _ in finding_lines(diff) if what != "gone"]
    if new:
        loudest = max(new, key=lambda one: SEVERITIES.index(one.severity))
        return f"tracehunch explain {loudest.id}"
    changed = [one for one in diff.scopes if one.changes and one.pair.after.scope.kind in DETAILED]
    if changed and diff.environment.same_kind:
        return f"tracehunch look {second} --scope {_quoted(changed[0].pair.after.scope.name)}"
    if not diff.environment.same_kind:
        return f"tracehunch look {second if diff.environment.on_gpu[1] else first}"
    return f"tracehunch guess --from {second} -o hunch.toml"


def _quoted(text: str) -> str:
    return "TRACE" if text == "-" else shlex.quote(printable(text))


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
