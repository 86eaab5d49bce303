"""The attention series at a glance: headline and table, worked out once for every format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.attention.leaves import BOOKKEEPING, leaf_text, leaves_of, work_text
from tracehunch.attention.outcome import Device, Outcome, Series, looks, time_key
from tracehunch.attention.ranking import rank
from tracehunch.report.attention_ceilings import ceilings_text
from tracehunch.report.attention_headline import group_outcomes
from tracehunch.report.attention_kernels import FEW_KERNELS, kernels_of, launch_text, short_identity
from tracehunch.report.attention_surprises import NO_NEWS, is_time_miss
from tracehunch.units import join, plural, printable, ratio, time_column, time_range_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.attention.workload import Workload
    from tracehunch.verdict import Look, Surprise

WORTH_SAYING: Final = 1.5
"""Longest forward over shortest from which on the spread is said."""


@dataclass(frozen=True, slots=True)
class Row:
    """One variant in the table; "" where there is nothing to say.

    ``guessed`` is the textbook's number of kernels (leaf ops), ``expert`` the expert's, as ``20``, or with
    copies as ``5+1``; ``seen`` is kernels and copies, as ``20+0``.
    """

    name: str
    changed: str
    guessed: str
    expert: str
    seen: str
    surprising: bool
    memsets: str
    gpu_time: str
    cpu_time: str
    times_best: str
    backend: str
    revealed: str
    spread: str

    @property
    def counts(self) -> str:
        """``1/20 → 20+0``: textbook, expert where it guesses, and seen."""
        expert = f"/{self.expert}" if self.expert else ""
        return f"{self.guessed}{expert} → {self.seen}"


def groups(series: Series) -> list[tuple[Device, Workload]]:
    """List what was looked at on what, once each: a table compares only the same work on the same device."""
    return list(dict.fromkeys((outcome.device, outcome.workload) for outcome, _ in looks(series)))


def group_rows(series: Series, device: Device, workload: Workload) -> list[Row]:
    """Give the rows of one group, in the order of the series; a column of times has one unit."""
    members = group_outcomes(series, device, workload)
    ranking = rank(members)
    best = ranking.order[0].time_us if ranking.order else None
    undecided = {one.variant.name for one in ranking.undecided}
    gpu_times = time_column([one.us("gpu_time") for one in members])
    cpu_times = time_column([one.us("cpu_time") for one in members])
    return [
        _row(one, gpu_time, cpu_time, _times_best(one, best), noisy=one.variant.name in undecided)
        for one, gpu_time, cpu_time in zip(members, gpu_times, cpu_times, strict=True)
    ]


def group_text(series: Series, device: Device, workload: Workload) -> str:
    """Say what a table is about: the device, and what its numbers are."""
    members = group_outcomes(series, device, workload)
    calls = sorted({len(one.scope.scope.calls) for one in members if one.scope is not None})
    guessed = "textbook/expert" if any(_expert_counts(one) for one in members) else "guessed"
    counted = (
        f"kernels: {guessed} → seen, kernels+copies" if device.kind == "cuda" else "leaf ops: guessed → seen"
    )
    what = "recorded with PyTorch's profiler, not run now" if device.recorded else "run now"
    numbers = f"Per forward, median of {_how_many(calls)}; {counted}." if calls else ""
    ceilings = ceilings_text(series.calibration, device)
    said = (f"{printable(str(device))}; {what}.", numbers, ceilings, _no_expert(members))
    return " ".join(filter(None, said))


def _no_expert(members: Sequence[Outcome]) -> str:
    """Say why there is no expert guess, once for all that lack one; "" if all have one."""
    reasons: dict[str, list[str]] = {}
    for one in members:
        if one.expert is not None and one.expert.untold:
            reasons.setdefault(one.expert.untold, []).append(one.variant.name)
    said = [
        f"{'' if len(names) == len(members) else f' for {join(names)}'}: {reason}"
        for reason, names in reasons.items()
    ]
    return printable(" ".join(f"No expert guess{one}." for one in said))


def revealed(outcome: Outcome) -> str:
    """Tell the finding that matters most; else what the kernel is, what the leaf ops are, what takes long."""
    if outcome.look is None:
        return ""
    here = [one for one in outcome.look.checked.findings if one.scope == outcome.variant.label]
    grave = [one for one in here if one.severity != "note" and one.id != NO_NEWS]
    if grave:
        more = f" (and {plural(len(grave) - 1, 'more finding')}, below)" if len(grave) > 1 else ""
        return printable(grave[0].summary) + more
    return _plain_revelation(outcome, outcome.look)


def _how_many(calls: Sequence[int]) -> str:
    return join([str(n) for n in calls], "or") if len(calls) <= 2 else f"{calls[0]} to {calls[-1]}"


def _times_best(outcome: Outcome, best_us: float | None) -> str:
    return ratio(outcome.time_us / best_us) if outcome.time_us and best_us else ""


def _row(outcome: Outcome, gpu_time: str, cpu_time: str, times_best: str, *, noisy: bool) -> Row:
    textbook = {claim.key: claim.expected for claim in outcome.guess.claims if claim.who == "textbook"}
    work = "kernels" if outcome.device.kind == "cuda" else "leaf_ops"
    return Row(
        name=outcome.variant.name,
        changed=outcome.variant.changed,
        guessed=str(textbook.get(work, "")),
        expert=_expert_counts(outcome),
        seen=_seen(outcome, work),
        surprising=_is_surprising(outcome),
        memsets=_fact(outcome, "memsets"),
        gpu_time=gpu_time,
        cpu_time=cpu_time,
        times_best=f"≈{times_best}" if noisy and times_best else times_best,
        backend=_fact(outcome, "sdpa.backend"),
        revealed=revealed(outcome),
        spread=_spread(outcome, noisy=noisy),
    )


def _is_surprising(outcome: Outcome) -> bool:
    """Whether something broke a guess that is more than views and allocations among the leaf ops."""
    return any(one.explained_by != (BOOKKEEPING,) for one in _loud(outcome))


def _loud(outcome: Outcome) -> list[Surprise]:
    """List the surprises that are more than a time outside the expert's range."""
    broken = () if outcome.look is None else outcome.look.verdict.surprises
    return [one for one in broken if not is_time_miss(one)]


def _expert_counts(outcome: Outcome) -> str:
    """Give the expert's number of kernels, as ``20``, with copies as ``5+1``; "" without such a guess."""
    claims = () if outcome.expert is None else outcome.expert.guess.claims
    told = {claim.key: claim.expected for claim in claims}
    if "kernels" not in told:
        return ""
    return f"{told['kernels']}+{told['copies']}" if told.get("copies") else str(told["kernels"])


def _seen(outcome: Outcome, work: str) -> str:
    """``5 + 1`` kernels and copies; on a CPU the leaf ops."""
    count = _fact(outcome, work)
    copies = _fact(outcome, "copies") if work == "kernels" else ""
    return f"{count}+{copies}" if copies else count


def _plain_revelation(outcome: Outcome, look: Look) -> str:
    """Tell what there is to say where no check warns."""
    lead = "" if _loud(outcome) else "as guessed: "
    fused = kernels_of(outcome)
    if 0 < len(fused) <= FEW_KERNELS:
        return lead + "; ".join(f"{short_identity(use)}{launch_text(outcome, look, use)}" for use in fused)
    leaves = leaves_of(outcome.scope, look.facts.tree) if outcome.scope else None
    if outcome.device.kind == "cpu" and leaves is not None and (views := leaf_text(leaves, named=False)):
        return lead + "; ".join(filter(None, (views, work_text(leaves))))
    dominant = outcome.scope.value("dominant") if outcome.scope else None
    most = printable(dominant[0]) if isinstance(dominant, tuple) and dominant else ""
    return f"{lead}{most} takes the most time" if most else "not what was guessed, see below"


def _spread(outcome: Outcome, *, noisy: bool) -> str:
    """By how much the forwards differ, where that is more than clocks explain, or leaves the rank open."""
    fact = outcome.scope.facts.get(time_key(outcome.device.kind)) if outcome.scope else None
    if fact is None or fact.low is None or fact.high is None:
        return ""
    if not noisy and fact.high <= WORTH_SAYING * fact.low:
        return ""
    said = f"its forwards differ: {time_range_us(fact.low, fact.high)}"
    return f"{said}, too noisy to rank" if noisy else said


def _fact(outcome: Outcome, key: str) -> str:
    value = outcome.scope.value(key) if outcome.scope else None
    return "" if value is None else join(value) if isinstance(value, tuple) else str(value)
