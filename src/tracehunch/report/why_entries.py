"""Why SDPA calls ran on their backends, in words: one entry for calls that differ in their sizes alone.

All text from the trace has gone through ``units.printable``; each format escapes what it must on top of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.predict.sdpa.raising import is_empty
from tracehunch.predict.traced import VERDICTS, traced_hazards
from tracehunch.predict.traced.words import call_text, strides_text
from tracehunch.report.why_lines import Labelled, lines_of
from tracehunch.units import count, elide, join, plural, printable, time_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracehunch.predict.traced import Case, Explained, Group, TracedHazard

_SCOPE: Final = 60  # characters of a scope's name
_ORIGINS: Final = {
    "compiled": "by a compiled graph, whose backend was picked when it was compiled",
    "direct": "its op was called directly, as nested tensors and torch.nn.attention.bias do",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One group of calls, with the others that differ from it in their sizes alone.

    `headline` goes on from the verdict; `lines` are (label, text), to be shown in order.
    """

    group: Group
    like: tuple[Group, ...]
    headline: str
    call: str
    time: str
    lines: tuple[Labelled, ...]
    hazards: tuple[TracedHazard, ...]


def entries(explained: Explained, triangles: frozenset[tuple[int, int]], *, backward: bool) -> list[Entry]:
    """Return the entries of a trace in the order of its groups, those of like calls with the costliest."""
    families: dict[tuple[object, ...], list[Group]] = {}
    hazards: dict[tuple[object, ...], tuple[TracedHazard, ...]] = {}
    for group in explained.groups:
        known = traced_hazards(group, triangles, has_backward=backward)
        family = (_family(group), tuple(one.hazard.id for one in known))
        families.setdefault(family, []).append(group)
        hazards.setdefault(family, known)
    return [_entry(alike, hazards[family]) for family, alike in families.items()]


def tally(explained: Explained) -> str:
    """``18 SDPA calls: 3 surprises, 15 as predicted``."""
    counts = {verdict: explained.count(verdict) for verdict in VERDICTS}
    total = sum(counts.values())
    words = {
        "surprise": plural(counts["surprise"], "surprise"),
        "depends": f"{counts['depends']} as some versions or readings predict",
        "as predicted": f"{counts['as predicted']} as predicted",
        "cannot tell": f"{counts['cannot tell']} that cannot be told",
    }
    told = [words[verdict] for verdict in VERDICTS if counts[verdict]]
    traced = f"; {count(explained.traced)} more that torch.compile traced, which ran nothing"
    return f"{plural(total, 'SDPA call')}: {join(told)}{traced if explained.traced else ''}"


def settings(explained: Explained) -> list[str]:
    """Return what the calls ran on, and the torch version, once each."""
    found = []
    for group in explained.groups:
        setting = group.setting
        if setting.hardware:
            torch = f"torch {setting.torch}" if setting.torch else "torch unknown"
            found.append(printable(f"{setting.hardware}, {torch}"))
    return list(dict.fromkeys(found))


def _family(group: Group) -> tuple[object, ...]:
    """Whatever two groups must have in common to be told as one: all but sizes, and what is said of them."""
    case = group.shown
    head = (group.verdict, group.unknown, group.scope, group.ran, group.calls[0].origin, group.calls[0].place)
    if case is None:
        return head
    call = case.call
    refused = tuple(
        (answer.backend, tuple(one.check for one in answer.rejections)) for answer in case.prediction.answers
    )
    kind = (call.q.dtype, call.q.ndim, call.mask is None, call.is_causal, call.enable_gqa, call.dropout)
    widths = (call.q.shape[-1], call.v.shape[-1], call.q.shape[-3:-2], call.k.shape[-3:-2])
    return (*head, group.calls[0].grad, group.setting, refused, kind, widths, case.prediction.chosen)


def _entry(alike: Sequence[Group], hazards: tuple[TracedHazard, ...]) -> Entry:
    group = alike[0]
    others = (("also", _others(alike[1:])),) if len(alike) > 1 else ()
    return Entry(
        group=group,
        like=tuple(alike[1:]),
        headline=_headline(group, group.shown),
        call=_call(group, group.shown),
        time=_time(group),
        lines=(*lines_of(group), *others),
        hazards=hazards,
    )


def _headline(group: Group, case: Case | None) -> str:
    calls = f"{plural(len(group.calls), 'call')} in {elide(printable(group.scope), _SCOPE)}"
    ran = f"ran {group.ran}" if group.ran else "ran no backend's op"
    text = f"{calls} {ran}{_ending(group, case)}"
    origin = _ORIGINS.get(group.calls[0].origin)
    return f"{text}; {origin}" if origin else text


def _ending(group: Group, case: Case | None) -> str:
    """Say what was to be expected in place of what ran, or how the call ended."""
    if case is None:
        return ""
    chosen, error = case.prediction.chosen, case.prediction.raises
    if group.verdict == "surprise":
        return f", where {f'an error ({error})' if error else chosen} was to be expected"
    if error and group.verdict in ("as predicted", "depends"):
        return f" and raised an error: {error}"
    return " (nothing to do: q, k or v is empty)" if group.ran is None and is_empty(case.call) else ""


def _call(group: Group, case: Case | None) -> str:
    if case is None:
        recorded = group.calls[0].recorded
        return "" if recorded is None else call_text(recorded.call)
    parts = [call_text(case.call), strides_text(case.call)]
    return "; ".join(part for part in parts if part)


def _time(group: Group) -> str:
    grad = {True: ", keeps what a backward needs", False: ", no gradient", None: ""}[group.calls[0].grad]
    gpu = f"{time_us(group.gpu_us)} a call on the GPU, " if group.gpu_us is not None else ""
    return f"{gpu}{time_us(group.cpu_us)} {'a call ' if not gpu else ''}on the host{grad}"


def _others(groups: Iterable[Group]) -> str:
    """``30 calls of 5 other sizes: L 512 to 1024, S 512 to 1024``."""
    some = list(groups)
    n_calls = sum(len(group.calls) for group in some)
    shapes = [group.cases[0].call for group in some if group.cases]
    text = f"{plural(n_calls, 'call')} of {plural(len(some), 'other size')}"
    if not shapes:
        return text
    spans = (
        _span("B", [call.q.shape[0] for call in shapes]),
        _span("L", [call.q.shape[-2] for call in shapes]),
        _span("S", [call.k.shape[-2] for call in shapes]),
    )
    return f"{text}: {', '.join(spans)}"


def _span(name: str, sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{name} {low}" if low == high else f"{name} {low} to {high}"
