"""What one wants to know first of the attention series: the fastest, and what was unexpected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.attention.ranking import Ranking, rank
from tracehunch.report.attention_surprises import is_time_miss, surprises
from tracehunch.units import join, plural, ratio, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.attention.outcome import Device, Outcome, Series
    from tracehunch.attention.workload import Workload
    from tracehunch.report.attention_surprises import Ranked
    from tracehunch.verdict import Surprise


def headline(series: Series) -> str:
    """Say which variant is fastest, how far behind the slowest is, and how many guesses did not hold."""
    first = next((one for one in series.outcomes if one.time_us), None)
    if first is None:
        return "Nothing was measured."
    ranking = rank(group_outcomes(series, first.device, first.workload))
    return f"{_fastest(ranking)}. {_verdict(series)}"


def group_outcomes(series: Series, device: Device, workload: Workload) -> list[Outcome]:
    """Give the outcomes that were looked at and did the same work on the same device."""
    return [
        one
        for one in series.outcomes
        if one.look is not None and (one.device, one.workload) == (device, workload)
    ]


def interrupted_text(series: Series) -> str:
    """Say that the series was stopped, and what is missing for it."""
    left = f" Not done: {', '.join(series.skipped)}." if series.skipped else ""
    return f"Interrupted.{left}"


def _fastest(ranking: Ranking) -> str:
    best, worst = ranking.order[0], ranking.order[-1]
    names = join([one.variant.name for one in ranking.leading])
    took = f"{time_us(best.time_us or 0.0)} a forward"
    if best is worst:
        return f"{best.variant.name} takes {took}"
    if ranking.noisy:
        told = f"Too noisy to rank {names} on this machine: forwards differ by up to {ratio(ranking.widest)}"
    elif len(ranking.leading) == len(ranking.order):
        return f"{names} take about as long, {took}"
    else:
        told = f"{names} {'is' if len(ranking.leading) == 1 else 'are'} fastest, {took}"
    if worst in ranking.leading:
        return told
    times = (worst.time_us or 0.0) / (best.time_us or 1.0)
    against = f"the {time_us(best.time_us or 0.0)} of {best.variant.name}" if ranking.noisy else "as long"
    return f"{told}; {worst.variant.name} takes {ratio(times)} {against}"


def _verdict(series: Series) -> str:
    """Tell how many guesses did not hold: the expert's first, if there is one."""
    ranked = surprises(series)
    said = _expert_verdict(series, ranked)
    broken = [one.surprise for one in ranked if "expert" not in one.who]
    if broken:
        told = _broken(broken)
        calm = said == _ALL_HELD or said.startswith(_BUT_TIMES)
        return f"{told} {said}" if calm else f"{said} {told}".strip()
    return "Every guess held." if said in ("", _ALL_HELD) else said


_ALL_HELD: Final = "Every expert guess held."
_BUT_TIMES: Final = "The expert guess held, but for"


def _expert_verdict(series: Series, ranked: Sequence[Ranked]) -> str:
    """Tell how the expert did; "" if it guessed nothing."""
    misses = sum(one.misses_expert for one in ranked) + sum(one.misjudged for one in series.outcomes)
    times = sum(is_time_miss(one.surprise) for one in ranked)
    if misses:
        return f"{plural(misses, 'expert guess', 'expert guesses')} did not hold, and nothing explains that."
    if times:
        return f"{_BUT_TIMES} {plural(times, 'guess of time', 'guesses of time')}."
    # what stands in for variants that could not run is no news of this machine
    here = [one for one in series.outcomes if one.status == "ran"] or series.outcomes
    guesses = any(one.look is not None and one.expert is not None and one.expert.guesses for one in here)
    return _ALL_HELD if guesses else ""


def _broken(broken: Sequence[Surprise]) -> str:
    unexplained = sum(not surprise.explained_by for surprise in broken)
    if len(broken) == 1:
        return f"1 guess did not hold, and is {'unexplained' if unexplained else 'explained'}."
    told = f"{plural(len(broken), 'guess', 'guesses')} did not hold"
    return f"{told}, {f'{unexplained} of them unexplained' if unexplained else 'all explained'}."
