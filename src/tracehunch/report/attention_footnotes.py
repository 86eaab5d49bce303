"""What the numbers of the attention series rest on."""

from __future__ import annotations

from typing import Final

from tracehunch.attention.outcome import Outcome, Series, looks
from tracehunch.report.origin import gpu_shares
from tracehunch.units import join, plural, printable

_OUTSIDE: Final = "outside-window"  # has a line of its own


def footnotes(series: Series) -> list[str]:
    """Say what the numbers rest on."""
    notes = (*checked(series), *outside_window(series), _traces(series), _seals(series))
    return [text for text in notes if text]


def checked(series: Series) -> list[str]:
    """Tell what was lost of the traces themselves, and how the outputs were checked."""
    return [*_damage(series), _verified(series)]


def _damage(series: Series) -> list[str]:
    """Tell what was lost of the traces themselves."""
    return [
        printable(f"{outcome.variant.name}: {notice.message}")
        for outcome, look in looks(series)
        for notice in (*look.facts.tree.trace.notices, *look.facts.tree.notices)
        if notice.lossy and notice.code != _OUTSIDE
    ]


def _verified(series: Series) -> str:
    """How close the outputs came to the reference; "" if none was checked."""
    known = [(one, one.verification) for one in series.outcomes if one.verification is not None]
    right = [(outcome, verification) for outcome, verification in known if verification.passed]
    if not right:
        return ""
    outcome, worst = max(right, key=lambda pair: pair[1].max_error / pair[1].tolerance)
    return (
        f"Outputs of {plural(len(right), 'variant')} agree with float64 on one batch element: largest error "
        f"{worst.max_error:.2g} ({outcome.variant.name}), allowed {worst.tolerance:.2g}."
    )


def outside_window(series: Series) -> list[str]:
    """How many GPU activities ran into the recordings from before."""
    counts = [(outcome.variant.name, gpu_shares(look.facts.tree).outside) for outcome, look in looks(series)]
    told = [f"{name} {count}" for name, count in counts if count]
    return [f"Launched before the recording began, and counted in no forward: {join(told)}."] if told else []


def _traces(series: Series) -> str:
    """Say where the events that are cited can be found."""
    seen = [outcome for outcome, _ in looks(series)]
    if not seen:
        return ""
    kept = all(outcome.trace is not None for outcome in seen)
    return "Event numbers are positions in each variant's trace" + (
        "." if kept else "; --save-traces keeps them."
    )


def _seals(series: Series) -> str:
    """List the seals of the guesses, shortened."""
    told = [f"{outcome.variant.name} {_sealed(outcome)}" for outcome in series.outcomes]
    return f"Guesses sealed before the look: {', '.join(told)}." if told else ""


def _sealed(outcome: Outcome) -> str:
    """``330c346f (expert 204600f4)``."""
    expert = outcome.expert
    too = f" (expert {expert.guess.seal[:8]})" if expert is not None and expert.guess.claims else ""
    return f"{outcome.guess.seal[:8]}{too}"
