"""Matched uses -> what changed: in count, in time, in kind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tracehunch.compare.model import Change, ChangeKind, Spread
from tracehunch.compare.noise import differ

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.matching import Match
    from tracehunch.compare.model import Use
    from tracehunch.trace.model import Trace

EVIDENCE: Final = 32
"""Events kept as evidence of one side of a change."""

_MOST: Final = 0.5
"""Share of what a scope moved by from which on a change is why it did."""

_HALF: Final = 0.5  # of an activity a call: below, both sides run as many


def changes_of(matches: Sequence[Match], before: Trace, after: Trace, *, on_gpu: bool) -> list[Change]:
    """Return what changed, by time; uses that run as often and as long as before are left out."""
    found = []
    for match in matches:
        first, second = total(match.before), total(match.after)
        n = min(count(match.before) or count(match.after), count(match.after) or count(match.before))
        apart = differ(first, second, on_gpu=on_gpu, n=n)
        kind = _kind(match, apart=apart, slower=second.value > first.value)
        if kind is not None:
            found.append(
                Change(
                    kind=kind,
                    at=_common(match.before, match.after),
                    before=match.before,
                    after=match.after,
                    delta_us=round(second.value - first.value, 3),
                    is_noise=not apart,
                    evidence_before=_evidence(before, match.before),
                    evidence_after=_evidence(after, match.after),
                )
            )
    return sorted(found, key=rank)


def without_doubt(changes: Sequence[Change], moved_us: float) -> list[Change]:
    """Take as no noise what makes up most of what its scope moved by beyond noise.

    The spread of many uses together is told only by bounds, which are wide.
    """
    if not moved_us:
        return list(changes)
    found = [
        replace(change, is_noise=change.is_noise and change.delta_us / moved_us < _MOST) for change in changes
    ]
    return sorted(found, key=rank)


def rank(change: Change) -> tuple[bool, float]:
    """Sort key: by time, what is noise last."""
    return change.is_noise, -abs(change.delta_us)


def total(uses: Sequence[Use]) -> Spread:
    """Sum the times of some uses."""
    return Spread(
        round(sum(use.time.value for use in uses), 3),
        round(sum(use.time.low for use in uses), 3),
        round(sum(use.time.high for use in uses), 3),
        max((use.time.calls for use in uses), default=2),
    )


def count(uses: Sequence[Use]) -> float:
    """Sum how many run in a call."""
    return round(sum(use.per_call for use in uses), 3)


def _kind(match: Match, *, apart: bool, slower: bool) -> ChangeKind | None:
    if match.how == "alone":
        return "appeared" if match.after else "went"
    if match.how != "same":
        return match.how
    more = count(match.after) - count(match.before)
    if abs(more) >= _HALF:
        return "more" if more > 0 else "fewer"
    return ("slower" if slower else "faster") if apart else None


def _common(before: Sequence[Use], after: Sequence[Use]) -> tuple[str, ...]:
    """Return the ops that all have in common; those of the one side where that is all there is."""
    paths = [use.path for use in (*before, *after)]
    shared = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return tuple(shared)


def _evidence(trace: Trace, uses: Sequence[Use]) -> tuple[int, ...]:
    rows = sorted(row for use in uses for row in use.rows[:EVIDENCE])
    return trace.events(rows[:EVIDENCE])
