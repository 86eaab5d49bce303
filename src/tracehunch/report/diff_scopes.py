"""Pairs of scopes as rows of a table, and the scopes that only one trace has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.report.diff_words import DETAILED, period_text, relative, times_text, wall_compares
from tracehunch.report.verdict_text import value_text
from tracehunch.units import count, join, plural, printable, time_range_us, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Diff, FactChange, ScopeDiff

_TOLD: Final = (
    "leaf_ops", "launches", "memsets", "copy_kernels", "syncs", "allocations", "graph", "compiled.recompiles",
    "sdpa.backend", "dtype", "tensor_cores", "bound",
)  # fmt: skip
"""Facts worth a word below a scope's row where they differ."""

_LONGEST: Final = 200  # characters of a scope's name
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
        name=printable(scope.pair.name, _LONGEST),
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
    period = scope.period
    round_ = period_text(period) if period is not None and period.outcome in ("more", "less") else ""
    return [
        text
        for text in (", ".join(moved), round_, f"calls differ: {'; '.join(wide)}" if wide else "")
        if text
    ]


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
