"""The attention series at a glance: headline and table, worked out once for every format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.attention.outcome import Device, Outcome, Series, looks, time_key, times_best
from tracehunch.report.attention_kernels import FEW_KERNELS, kernels_of, short_identity
from tracehunch.report.attention_leaves import leaf_text
from tracehunch.units import join, microseconds, plural, printable, ratio, time_range_us, time_us

if TYPE_CHECKING:
    from tracehunch.attention.workload import Workload
    from tracehunch.verdict import Look

WORTH_SAYING: Final = 1.5
"""Longest forward over shortest from which on the spread is said."""


@dataclass(frozen=True, slots=True)
class Row:
    """One variant in the table; "" where there is nothing to say."""

    name: str
    changed: str
    guessed: str
    seen: str
    surprising: bool
    memsets: str
    gpu_time: str
    cpu_time: str
    times_best: str
    backend: str
    revealed: str
    spread: str


_ALIKE: Final = 1.02  # clocks alone vary by as much
_PAIR: Final = 2


def headline(series: Series) -> str:
    """Say what one wants to know first: the fastest, how far behind the slowest is, what was unexpected."""
    times = times_best(series.outcomes)
    measured = [outcome for outcome in series.outcomes if outcome.variant.name in times]
    if not measured:
        return "Nothing was measured."
    main = [outcome for outcome in measured if outcome.device == measured[0].device]
    best = min(main, key=lambda outcome: outcome.time_us or 0.0)
    worst = max(main, key=lambda outcome: outcome.time_us or 0.0)
    text = f"{best.variant.name} is fastest, {time_us(best.time_us or 0.0)} a forward"
    if worst is not best and times[worst.variant.name] < _ALIKE:
        text += "; the others take" if len(main) > _PAIR else f"; {worst.variant.name} takes"
        text += " about as long"
    elif worst is not best:
        text += f"; {worst.variant.name} takes {ratio(times[worst.variant.name])} as long"
    broken = [surprise for _, look in looks(series) for surprise in look.verdict.surprises]
    unexplained = sum(not surprise.explained_by for surprise in broken)
    if not broken:
        return f"{text}. Every guess held."
    told = f"{plural(len(broken), 'guess', 'guesses')} did not hold"
    return f"{text}. {told}, {f'{unexplained} of them unexplained' if unexplained else 'all explained'}."


def groups(series: Series) -> list[tuple[Device, Workload]]:
    """List what was looked at on what, once each: a table compares only the same work on the same device."""
    return list(dict.fromkeys((outcome.device, outcome.workload) for outcome, _ in looks(series)))


def rows(series: Series) -> list[Row]:
    """Every outcome as a row of the table, in the order of the series."""
    times = times_best(series.outcomes)
    return [_row(outcome, times) for outcome in series.outcomes]


def group_rows(series: Series, device: Device, workload: Workload) -> list[Row]:
    """Give the rows of one group."""
    pairs = zip(series.outcomes, rows(series), strict=True)
    return [
        row for one, row in pairs if one.look is not None and (one.device, one.workload) == (device, workload)
    ]


def group_text(series: Series, device: Device, workload: Workload) -> str:
    """Say what a table is about: the device, and what its numbers are."""
    members = [one for one in series.outcomes if (one.device, one.workload) == (device, workload)]
    calls = sorted({len(one.scope.scope.calls) for one in members if one.scope is not None})
    counted = (
        "kernels: guessed → seen, kernels+copies" if device.kind == "cuda" else "leaf ops: guessed → seen"
    )
    what = "recorded with PyTorch's profiler, not run now" if device.recorded else "run now"
    numbers = f"Per forward, median of {join([str(n) for n in calls], 'or')}; {counted}." if calls else ""
    return f"{printable(str(device))}; {what}. {numbers}"


def interrupted_text(series: Series) -> str:
    """Say that the series was stopped, and what is missing for it."""
    left = f" Not done: {', '.join(series.skipped)}." if series.skipped else ""
    return f"Interrupted.{left}"


def _row(outcome: Outcome, times: dict[str, float]) -> Row:
    name = outcome.variant.name
    textbook = {claim.key: claim.expected for claim in outcome.guess.claims if claim.who == "textbook"}
    work = "kernels" if outcome.device.kind == "cuda" else "leaf_ops"
    surprising = outcome.look is not None and bool(outcome.look.verdict.surprises)
    return Row(
        name=name,
        changed=outcome.variant.changed,
        guessed=str(textbook.get(work, "")),
        seen=_seen(outcome, work),
        surprising=surprising,
        memsets=_fact(outcome, "memsets"),
        gpu_time=_time(outcome, "gpu_time"),
        cpu_time=_time(outcome, "cpu_time"),
        times_best=ratio(times[name]) if name in times else "",
        backend=_fact(outcome, "sdpa.backend"),
        revealed=_revealed(outcome),
        spread=_spread(outcome),
    )


def _seen(outcome: Outcome, work: str) -> str:
    """``5 + 1`` kernels and copies; on a CPU the leaf ops."""
    count = _fact(outcome, work)
    copies = _fact(outcome, "copies") if work == "kernels" else ""
    return f"{count}+{copies}" if copies else count


def _revealed(outcome: Outcome) -> str:
    """Tell the finding that matters most; else what the kernel is, what the leaf ops are, what takes long."""
    if outcome.look is None:
        return ""
    here = [one for one in outcome.look.checked.findings if one.scope == outcome.variant.label]
    grave = [one for one in here if one.severity != "note"]
    if grave:
        more = f" (and {plural(len(grave) - 1, 'more finding')}, below)" if len(grave) > 1 else ""
        return printable(grave[0].summary) + more
    return _plain_revelation(outcome, outcome.look)


def _plain_revelation(outcome: Outcome, look: Look) -> str:
    """Tell what there is to say where no check warns."""
    lead = "" if look.verdict.surprises else "as guessed: "
    fused = kernels_of(outcome)
    if 0 < len(fused) <= FEW_KERNELS:
        return lead + "; ".join(short_identity(use) for use in fused)
    if outcome.device.kind == "cpu" and (leaves := leaf_text(outcome)):
        return lead + leaves
    dominant = outcome.scope.value("dominant") if outcome.scope else None
    most = printable(dominant[0]) if isinstance(dominant, tuple) and dominant else ""
    return f"{lead}{most} takes the most time" if most else "not what was guessed, see below"


def _spread(outcome: Outcome) -> str:
    """By how much the forwards differ, where that is more than clocks explain."""
    fact = outcome.scope.facts.get(time_key(outcome.device.kind)) if outcome.scope else None
    if fact is None or fact.low is None or fact.high is None or fact.high <= WORTH_SAYING * fact.low:
        return ""
    return f"its forwards differ: {time_range_us(fact.low, fact.high)}"


def _fact(outcome: Outcome, key: str) -> str:
    value = outcome.scope.value(key) if outcome.scope else None
    return "" if value is None else join(value) if isinstance(value, tuple) else str(value)


def _time(outcome: Outcome, key: str) -> str:
    us = outcome.us(key)
    return "" if us is None else microseconds(us)
