"""The changes of a comparison in words: by how much, of what kind, where, why, on which events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.compare.changes import count as count_of
from tracehunch.compare.changes import total
from tracehunch.report.diff_words import ENGINE, TOP, path_text, scope_name, signed_time, times_text
from tracehunch.report.finding_texts import evidence_text
from tracehunch.report.kernel_rows import identity_text
from tracehunch.tree import NONE, Api
from tracehunch.units import count, elide, join, plural, printable, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from tracehunch.compare.model import Change, ChangeKind, Diff, ScopeDiff, Use
    from tracehunch.tree import Tree

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
_NAMED: Final = 3  # uses of one side that are named
_NAME: Final = 72  # characters of a kernel's name
_OP: Final = 48  # characters of an op's name in a list
_HOST: Final = 3
_SOURCE: Final = "source"  # id of the cause that names a source line
_LARGE: Final = 0.003
"""Part of a scope's time from which on a change is listed unasked."""


@dataclass(frozen=True, slots=True)
class ChangeText:
    """One change: by how much a call, what kind, where; both sides, why, the source line, and its events."""

    delta: str
    kind: str
    where: str
    scope: str
    lines: tuple[str, ...]
    causes: tuple[str, ...]
    source: str
    evidence: str


@dataclass(frozen=True, slots=True)
class ChangeList:
    """The changes worth most, and what is left out."""

    shown: tuple[ChangeText, ...]
    rest: str


def change_list(diff: Diff, top: int) -> ChangeList:
    """Return the changes of all scopes, those of most time first; noise and what is left over is counted."""
    scopes = [scope for scope in diff.scopes if scope.changes]
    found = [(scope, change) for scope in scopes for change in scope.changes if not change.is_noise]
    found.sort(key=lambda pair: -abs(pair[1].delta_us) * len(pair[0].pair.after.scope.calls))
    large = [pair for pair in found if _is_large(*pair)] if top == TOP else found
    picked = (large or found)[:top]
    told: set[str] = set()
    shown = [_change_text(diff, scope, change, told, named=len(scopes) > 1) for scope, change in picked]
    rest = [pair[1] for pair in found if pair not in picked]
    noise = sum(change.is_noise for scope in scopes for change in scope.changes)
    return ChangeList(tuple(shown), _rest(rest, noise, len(found)))


def _is_large(scope: ScopeDiff, change: Change) -> bool:
    """Whether a change is worth reading about, beside what the scope takes, and took."""
    sides = scope.pair.before, scope.pair.after
    key = "gpu_time" if all(side.value("gpu_time") is not None for side in sides) else "wall_time"
    values = [side.value(key) for side in sides]
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


def _change_text(diff: Diff, scope: ScopeDiff, change: Change, told: set[str], *, named: bool) -> ChangeText:
    return ChangeText(
        delta=signed_time(change.delta_us),
        kind=_WORDS[change.kind],
        where=_where(diff, change),
        scope=scope_name(scope) if named else "",
        lines=tuple(_lines(change)),
        causes=tuple(_causes(change, told)),
        source=next((printable(cause.text) for cause in change.causes if cause.id == _SOURCE), ""),
        evidence=_evidence(change),
    )


def _causes(change: Change, told: set[str]) -> Iterator[str]:
    """Yield the causes; what a finding says is told once."""
    for cause in change.causes:
        text = printable(cause.text)
        finding, colon, _ = text.partition(": ")
        if cause.id != _SOURCE:
            yield f"{finding}, as above" if colon and text in told and " finding " in finding else text
        told.add(text)


def _where(diff: Diff, change: Change) -> str:
    """Return the ops that it is about: those both sides have in common, else those that each has."""
    if change.at:
        return path_text(change.at)
    first, second = (_roots(uses) for uses in (change.before, change.after))
    if first and second and first != second:
        return f"{first} -> {second}"
    look, uses = (diff.after, change.after) if change.after else (diff.before, change.before)
    return first or second or _launched_by(look.facts.tree, uses)


def _launched_by(tree: Tree, uses: Sequence[Use]) -> str:
    launches = [int(tree.launch[row]) for use in uses for row in use.rows[:1]]
    is_replay = any(launch != NONE and tree.api[launch] == Api.GRAPH for launch in launches)
    return "a CUDA graph's replay" if is_replay else "no op known"


def _roots(uses: Sequence[Use]) -> str:
    roots = dict.fromkeys(use.path[0].removeprefix(ENGINE) for use in uses if use.path)
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
    names = {use.op.removeprefix(ENGINE) for use in uses if not use.op.startswith(ENGINE)}
    parts = [f"{_short(use, names)} {time_us(use.time.value)}" for use in ordered[:_NAMED]]
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


def _short(use: Use, others: AbstractSet[str]) -> str:
    """Name a use by its op. ``others``: nodes of autograd named beside the engine's calls."""
    name = use.op.removeprefix(ENGINE)
    engine = "autograd engine's " if use.op.startswith(ENGINE) and name in others else ""
    op = f"{engine}{elide(printable(name or use.name), _OP)}"
    return f"{count(use.per_call)} x {op}" if use.per_call != 1 else op


def _evidence(change: Change) -> str:
    sides = (("before", change.evidence_before), ("after", change.evidence_after))
    return "; ".join(f"{side} {evidence_text(events)}" for side, events in sides if events)


def host_text(scope: ScopeDiff) -> str:
    """Return what the host spent more or less on, the largest first; "" where that did not change."""
    wall = scope.fact("wall_time")
    if wall is None or wall.outcome not in ("more", "less"):
        return ""
    parts = [(change.delta_us, _host_change(change)) for change in scope.host]
    outside = scope.outside
    if outside is not None and outside.outcome in ("more", "less"):
        parts.append((outside.delta_us, f"outside PyTorch {signed_time(outside.delta_us)}"))
    parts.sort(key=lambda part: -abs(part[0]))
    more = len(parts) - _HOST
    shown = ", ".join(text for _, text in parts[:_HOST])
    return shown + (f" and {more} more" if more > 0 else "")


def _host_change(change: Change) -> str:
    uses = change.after or change.before
    name = elide(printable(uses[0].name), _OP)
    first, second = count_of(change.before), count_of(change.after)
    times = f"{count(second)} a call" if first == second else f"{count(first)} -> {count(second)} a call"
    return f"{name} {signed_time(change.delta_us)} ({times})"
