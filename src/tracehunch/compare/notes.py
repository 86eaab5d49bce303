"""What a reader should know before they trust a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.compare.noise import ALONE, GPU_MARGIN, HOST_MARGIN
from tracehunch.compare.recording import host_compares, other_ranks, recorded_text
from tracehunch.compare.waiting import waits_for_host
from tracehunch.tree import Api
from tracehunch.units import count, percent, plural, printable, ratio, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.environment import EnvironmentDiff
    from tracehunch.compare.model import ScopeDiff, ScopePair
    from tracehunch.facts.model import Facts

_COLD: Final = 1.5
"""How much longer than the median a first call is that did something for the first time."""

_SAME_WORK: Final = 1.25
"""Ratio of medians up to which two scopes may do the same."""

_UNLIKE: Final = 0.8
"""Share of the time without a counterpart from which on two traces may be of two programs."""

_ALIKE: Final = 1.2
"""Ratio of a kernel's times up to which it may be the clock."""


def notes_of(
    before: Facts, after: Facts, pairs: Sequence[ScopePair], environment: EnvironmentDiff
) -> Iterator[str]:
    """Yield remarks on how the traces were recorded and matched."""
    first, second = before.tree.trace, after.tree.trace
    if environment.same_kind and not host_compares(first, second):
        yield (
            f"before recorded {recorded_text(first)}, after {recorded_text(second)}: recording costs time on "
            "the host, so wall and CPU times count only where they differ the other way"
        )
    if other_ranks(first, second):
        ranks = first.header.rank, second.header.rank
        yield f"these are two ranks ({ranks[0]} and {ranks[1]}): they may do different work"
    yield from _single_calls(pairs, on_gpu=all(environment.on_gpu))
    yield from _compiled(before, after)
    for pair in pairs:
        if pair.matched == "position":
            yield (
                f"{printable(pair.before.scope.name)} is compared with {printable(pair.after.scope.name)}: "
                "each is the only annotation left without a namesake; --scope BEFORE=AFTER says otherwise"
            )
        if pair.before.scope.kind == "annotation" and (text := _calls_per_step(pair, before, after)):
            yield text
    if environment.times_compare:
        yield from _first_calls(pairs)


def clock_note(scopes: Sequence[ScopeDiff]) -> str:
    """Say that all kernels became slower (or faster) alike, as they do with another clock; else ""."""
    changes = [change for scope in scopes for change in scope.changes if change.kind in ("slower", "faster")]
    ratios = [
        sum(use.time.value for use in one.after) / (sum(use.time.value for use in one.before) or 1)
        for one in changes
        if one.before and one.after
    ]
    if len(ratios) < 5 or min(ratios) <= 0:  # so few may be chance
        return ""
    slower = min(ratios) > 1
    if (slower or max(ratios) < 1) and max(ratios) / min(ratios) <= _ALIKE:
        middle = sorted(ratios)[len(ratios) // 2]
        how = f"{'slower' if slower else 'faster'} by about {percent(abs(middle - 1) * 100)} each"
        return (
            f"{plural(len(ratios), 'use')} of the same kernels are {how}: clocks, power or temperature "
            "rather than the code"
        )
    return ""


def _single_calls(pairs: Sequence[ScopePair], *, on_gpu: bool) -> Iterator[str]:
    """Say that one call shows no spread."""
    kinds = ("annotation", "step")
    chosen = [pair for pair in pairs if pair.before.scope.kind in kinds]
    alone = [
        side
        for side in ("before", "after")
        if chosen and all(len(getattr(pair, side).scope.calls) == 1 for pair in chosen)
    ]
    if not alone:
        return
    whose = "both traces have" if len(alone) > 1 else f"the trace {alone[0]} has"
    gpu, host = (percent(100 * margin * ALONE) for margin in (GPU_MARGIN, HOST_MARGIN))
    counts = f"GPU times count as different from {gpu} on, host times from {host}"
    if not on_gpu:
        counts = f"times count as different from {host} on"
    yield f"{whose} one call, which shows no spread: {counts}"


def unlike_note(before: Facts, after: Facts, scopes: Sequence[ScopeDiff]) -> str:
    """Say that two traces have next to nothing in common; else ""."""
    shares = _share_alone(before, scopes, "before"), _share_alone(after, scopes, "after")
    if min(shares) < _UNLIKE:
        return ""
    most = percent(100 * (1 - min(shares)))
    return f"these may be two programs: what both run takes at most {most} of the time"


def _share_alone(facts: Facts, scopes: Sequence[ScopeDiff], side: str) -> float:
    """Share of one side's time that nothing on the other side stands for."""
    whole = next((one for one in facts.scopes if one.scope.kind == "whole"), None)
    total = whole.value("gpu_time") or whole.value("cpu_time") if whole is not None else None
    if not isinstance(total, int | float) or not total:
        return 0.0
    alone = sum(
        len(getattr(scope.pair, side).scope.calls) * use.time.value
        for scope in scopes
        for change in scope.changes
        if change.kind in ("went", "appeared")
        for use in getattr(change, side)
    )
    return float(alone / total)


def _compiled(before: Facts, after: Facts) -> Iterator[str]:
    """Say that one side runs compiled code or replays graphs, and the other does not."""
    first, second = _is_compiled(before), _is_compiled(after)
    if first != second:
        side = "after" if second else "before"
        yield f"the trace {side} runs code of torch.compile, the other does not"
    first, second = (bool((facts.tree.api == Api.GRAPH).any()) for facts in (before, after))
    if first != second:
        side = "after" if second else "before"
        what = "what a replay runs is known by kernel names alone"
        yield f"the trace {side} replays CUDA graphs, the other does not: {what}"


def _is_compiled(facts: Facts) -> bool:
    return any(scope.value("compiled") for scope in facts.scopes)


def _calls_per_step(pair: ScopePair, before: Facts, after: Facts) -> str:
    """Say that a scope is entered more or less often in a step."""
    rates = [
        len(scope.scope.calls) / steps
        for scope, facts in ((pair.before, before), (pair.after, after))
        if (steps := _steps(facts))
    ]
    if len(rates) < 2 or rates[0] == rates[1]:  # no steps, or the same
        return ""
    name = printable(pair.name)
    return f"{name} is called {count(round(rates[0], 2))} -> {count(round(rates[1], 2))} times a step"


def _first_calls(pairs: Sequence[ScopePair]) -> Iterator[str]:
    """Say that first calls differ, and by more than the others: a cold start, which no median shows.

    Of several annotations the one whose first calls differ most is told.
    """
    found = [(pair, _first_call(pair)) for pair in pairs if pair.before.scope.kind == "annotation"]
    told = [(abs(call.times[1] - call.times[0]), pair, call) for pair, call in found if call is not None]
    if told:
        _, pair, call = max(told, key=lambda one: one[0])
        times = " -> ".join(time_us(one) for one in call.times)
        medians = " -> ".join(ratio(one) for one in call.ratios)
        yield (
            f"the first call of {printable(pair.name)} takes {times}, {medians} its median: a cold start, "
            "left out of medians"
        )


@dataclass(frozen=True, slots=True)
class _FirstCall:
    """Microseconds of the first call before and after, and how many times the median that is."""

    times: tuple[float, float]
    ratios: tuple[float, float]


def _first_call(pair: ScopePair) -> _FirstCall | None:
    times, ratios = [], []
    if not any(waits_for_host(side) for side in (pair.before, pair.after)):
        return None  # the GPU is behind: nobody waits for the host
    for side in (pair.before, pair.after):
        calls, median = side.scope.calls, side.value("wall_time")
        if len(calls) < 3 or not isinstance(median, int | float) or not median:  # too few for a usual one
            return None
        times.append((calls[0].end_ns - calls[0].start_ns) / 1e3)
        ratios.append(times[-1] / median)
    longer = times.index(max(times))
    alike = times[0] / ratios[0], times[1] / ratios[1]  # medians: else the scopes do not do the same
    if max(alike) > _SAME_WORK * min(alike) or ratios[longer] < _COLD:
        return None
    if max(times) < (1 + 2 * HOST_MARGIN) * min(times):
        return None
    return _FirstCall((times[0], times[1]), (ratios[0], ratios[1]))


def _steps(facts: Facts) -> int:
    return next((len(one.scope.calls) for one in facts.scopes if one.scope.kind == "step"), 0)
