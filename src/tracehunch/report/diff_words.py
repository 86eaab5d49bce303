"""A comparison in words, whatever format it is written in: what changed by how much, where, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.compare.changes import count as count_of
from tracehunch.compare.changes import total
from tracehunch.compare.recording import host_compares, is_real
from tracehunch.report.finding_texts import evidence_text
from tracehunch.report.kernel_rows import identity_text
from tracehunch.units import count, elide, join, percent, plural, printable, ratio, time_column, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Change, ChangeKind, Diff, ScopeDiff, Use

DETAILED: Final = ("annotation", "step", "whole")
TOP: Final = 8
"""Changes that a report lists unless told otherwise."""

_WORDS: Final[dict[ChangeKind, str]] = {
    "went": "went",
    "appeared": "appeared",
    "fewer": "fewer",
    "more": "more",
    "slower": "slower",
    "faster": "faster",
    "kernel": "another kernel",
    "replaced": "replaced",
    "fused": "fused",
    "unfused": "no longer fused",
}
_ENGINE: Final = "autograd::engine::evaluate_function: "
_NAMED: Final = 3  # uses of one side that are named
_NAME: Final = 72  # characters of a kernel's name
_OP: Final = 48  # characters of an op's name in a list
_HOST: Final = 3
_LARGE: Final = 0.003
"""Part of a scope's time from which on a change is listed unasked."""


@dataclass(frozen=True, slots=True)
class ChangeText:
    """One change: by how much a call, what kind, where; both sides, why, and on which events it rests."""

    delta: str
    kind: str
    where: str
    scope: str
    lines: tuple[str, ...]
    causes: tuple[str, ...]
    evidence: str


@dataclass(frozen=True, slots=True)
class ChangeList:
    """The changes worth most, and what is left out."""

    shown: tuple[ChangeText, ...]
    rest: str


def headline(diff: Diff) -> list[str]:
    """Return what a reader should know first: which scopes became slower or faster, or that nothing did."""
    chosen = [scope for scope in diff.scopes if scope.pair.after.scope.kind in DETAILED]
    moved = [scope for scope in chosen if scope.delta_us]
    annotated = [scope for scope in moved if scope.pair.after.scope.kind == "annotation"] or moved
    if annotated:
        beware = "" if diff.environment.times_compare else "; times do not compare"
        return [
            f"{_moved_text(scope, comparable=wall_compares(diff, scope))}{beware}" for scope in annotated[:3]
        ]
    if not chosen:
        return ["There is nothing to compare."]
    alike = host_compares(diff.before.facts.tree.trace, diff.after.facts.tree.trace)
    if any(scope.changes for scope in chosen):
        what = "No scope" if alike else "As far as times compare, no scope"
        return [f"{what} became slower or faster beyond noise; what it runs changed."]
    return ["Nothing differs beyond noise: the same kernels, as often, in the same time."]


def _moved_text(scope: ScopeDiff, *, comparable: bool) -> str:
    """``attn_fwd is faster: GPU time 1,063.5 us -> 938.1 us a call (-12%)``."""
    keys = ("gpu_time", "wall_time") if comparable else (scope.time_key,)
    parts = [text for key in keys if (text := fact_text(scope, key))]
    name = printable(scope.pair.name)
    return f"{name} is {'slower' if scope.delta_us > 0 else 'faster'}, per call: {'; '.join(parts)}"


def wall_compares(diff: Diff, scope: ScopeDiff) -> bool:
    """Whether a scope's wall times may be held against each other: recorded alike, or against the odds."""
    fact = scope.fact("wall_time")
    if fact is None or fact.before is None or fact.after is None:
        return False
    first, second = fact.before.value, fact.after.value
    traces = diff.before.facts.tree.trace, diff.after.facts.tree.trace
    if fact.outcome in ("same", "noise") or not isinstance(first, int | float):
        return host_compares(*traces)
    return isinstance(second, int | float) and is_real(*traces, second - first)


def fact_text(scope: ScopeDiff, key: str) -> str:
    """``GPU time 1.064 ms -> 938.1 us (-12%)``; "" where a side does not tell it."""
    fact = scope.fact(key)
    if fact is None or fact.before is None or fact.after is None:
        return ""
    first, second = fact.before.value, fact.after.value
    if not isinstance(first, int | float) or not isinstance(second, int | float):
        return ""
    words = {"gpu_time": "GPU time", "wall_time": "wall time"}[key]
    if fact.outcome in ("same", "noise"):
        return f"{words} the same within noise"
    return f"{words} {times_text(first, second)} ({relative(first, second)})"


def times_text(before: float, after: float) -> str:
    """``1,063.5 -> 938.1 us``: in one unit where it fits both."""
    first, second = time_column([before, after])
    number, _, unit = first.partition(" ")
    return f"{number} -> {second}" if second.endswith(f" {unit}") else f"{first} -> {second}"


def relative(before: float, after: float) -> str:
    """``-12%``, ``+30%``, ``3.20x``; ``new`` where there was nothing."""
    if before <= 0:
        return "new"
    change = 100 * (after / before - 1)
    if change >= 100:  # twice as much, and more
        return ratio(after / before)
    return f"{'+' if change >= 0 else '-'}{percent(abs(change))}"


def signed_time(us: float) -> str:
    """``-126.9 us``, ``+259.0 us``."""
    return f"{'+' if us >= 0 else '-'}{time_us(abs(us))}"


def change_list(diff: Diff, top: int) -> ChangeList:
    """Return the changes of all scopes, those of most time first; noise and what is left over is counted."""
    scopes = [scope for scope in diff.scopes if scope.changes]
    found = [(scope, change) for scope in scopes for change in scope.changes if not change.is_noise]
    found.sort(key=lambda pair: -abs(pair[1].delta_us) * len(pair[0].pair.after.scope.calls))
    several = len(scopes) > 1
    large = [pair for pair in found if _is_large(*pair)] if top == TOP else found
    picked = (large or found)[:top]
    shown = [_change_text(change, scope if several else None) for scope, change in picked]
    rest = [pair[1] for pair in found if pair not in picked]
    noise = sum(change.is_noise for scope in scopes for change in scope.changes)
    return ChangeList(tuple(shown), _rest(rest, noise, len(found)))


def _is_large(scope: ScopeDiff, change: Change) -> bool:
    """Whether a change is worth reading about, beside what the scope takes, and took."""
    key = scope.time_key
    values = [side.value(key) for side in (scope.pair.before, scope.pair.after)]
    largest = max((float(one) for one in values if isinstance(one, int | float)), default=0.0)
    return abs(change.delta_us) >= _LARGE * largest


def _rest(rest: Sequence[Change], noise: int, n: int) -> str:
    parts = []
    if rest:
        less, more = (
            sum(one.delta_us for one in rest if (one.delta_us > 0) == grew) for grew in (False, True)
        )
        sums = join([signed_time(one) for one in (less, more) if one])
        parts.append(f"{plural(len(rest), 'more change')} ({sums}); --top {n} lists all")
    if noise:
        what = plural(noise, "change that moves no time", "changes that move no time")
        parts.append(f"{what} beyond noise, in --format json")
    return "; ".join(parts)


def _change_text(change: Change, scope: ScopeDiff | None) -> ChangeText:
    return ChangeText(
        delta=signed_time(change.delta_us),
        kind=_WORDS[change.kind],
        where=where_text(change),
        scope="" if scope is None else printable(scope.pair.name),
        lines=tuple(_lines(change)),
        causes=tuple(printable(cause.text) for cause in change.causes),
        evidence=_evidence(change),
    )


def where_text(change: Change) -> str:
    """Return the ops that it is about: those both sides have in common, else those that each has."""
    if change.at:
        return path_text(change.at)
    first, second = (_roots(uses) for uses in (change.before, change.after))
    if first and second and first != second:
        return f"{first} -> {second}"
    return first or second or "no op known"


def path_text(path: Sequence[str]) -> str:
    """``aten::linear > aten::mm``: the op called, and the one that launched."""
    plain = [elide(printable(name.removeprefix(_ENGINE)), _NAME) for name in path]
    plain = [name for at, name in enumerate(plain) if at == 0 or name != plain[at - 1]]
    return " > ".join(plain if len(plain) < 3 else (plain[0], plain[-1]))


def _roots(uses: Sequence[Use]) -> str:
    roots = dict.fromkeys(use.path[0].removeprefix(_ENGINE) for use in uses if use.path)
    names = [elide(printable(root), _OP) for root in roots]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _lines(change: Change) -> list[str]:
    if len(change.before) == len(change.after) == 1 and change.kind not in ("fused", "unfused", "replaced"):
        return _both(change)
    lines = []
    for side, uses in (("before", change.before), ("after", change.after)):
        if uses:
            prefix = f"{side}: " if change.before and change.after else ""
            lines.append(f"{prefix}{_uses_text(uses)}")
    return lines


def _both(change: Change) -> list[str]:
    """One use on each side: counts, times, and the time of each where several run."""
    first, second = change.before[0], change.after[0]
    n = (
        f"{count(second.per_call)} a call"
        if first.per_call == second.per_call
        else f"{count(first.per_call)} -> {count(second.per_call)} a call"
    )
    text = f"{n}, {times_text(first.time.value, second.time.value)}"
    if (first.per_call > 1 or second.per_call > 1) and first.per_call and second.per_call:
        each = (use.time.value / use.per_call for use in (first, second))
        text += f" ({times_text(*each)} each)"
    if first.name == second.name or change.kind == "kernel":
        names = [first] if first.name == second.name else [first, second]
        return [f"{text}: {' -> '.join(_name(use) for use in names)}"]
    return [f"{text}: {_name(second)}"]


def _uses_text(uses: Sequence[Use]) -> str:
    """``20 kernels, 2.617 ms: aten::bmm (cublas gemm fp32) 539.4 us, ... and 13 more``."""
    ordered = sorted(uses, key=lambda use: -use.time.value)
    parts = [f"{_short(use)} {time_us(use.time.value)}" for use in ordered[:_NAMED]]
    more = f" and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
    if len(uses) == 1:
        return f"{_amount(uses)}, {time_us(uses[0].time.value)} a call: {_name(uses[0])}"
    return f"{_amount(uses)}, {time_us(total(uses).value)} a call: {', '.join(parts)}{more}"


def _amount(uses: Sequence[Use]) -> str:
    """``20 kernels and 1 copy``."""
    words = (
        ("kernel", "kernel", "kernels"),
        ("memcpy", "copy", "copies"),
        ("memset", "memset", "memsets"),
        ("op", "op", "ops"),
        ("call", "call", "calls"),
    )
    parts = []
    for kind, one, several in words:
        n = count_of([use for use in uses if use.kind == kind])
        parts += [plural(n, one, several)] if n else []
    return join(parts)


def _name(use: Use) -> str:
    name = elide(printable(use.name), _NAME)
    if use.kind != "kernel" or use.identity is None:
        return name
    return f"{identity_text(use.identity)}, {name}"


def _short(use: Use) -> str:
    op = elide(printable(use.op.removeprefix(_ENGINE) or use.name), _OP)
    return f"{count(use.per_call)} x {op}" if use.per_call != 1 else op


def _evidence(change: Change) -> str:
    sides = (("before", change.evidence_before), ("after", change.evidence_after))
    return "; ".join(f"{side} {evidence_text(events)}" for side, events in sides if events)


def host_text(scope: ScopeDiff) -> str:
    """Return what the host spent more or less on, the largest first; "" where that did not change."""
    parts = []
    for change in scope.host[:_HOST]:
        uses = change.after or change.before
        name = elide(printable(uses[0].name), _OP)
        first, second = count_of(change.before), count_of(change.after)
        times = f"{count(second)} a call" if first == second else f"{count(first)} -> {count(second)} a call"
        parts.append(f"{name} {signed_time(change.delta_us)} ({times})")
    more = len(scope.host) - _HOST
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")
