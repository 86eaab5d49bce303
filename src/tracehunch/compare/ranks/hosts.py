"""What the hosts of ranks need, and whether it is they that the GPUs wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from tracehunch.compare.ranks.blame import blame
from tracehunch.compare.ranks.damage import is_cut
from tracehunch.compare.ranks.per_step import Late
from tracehunch.units import percent, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.excess import Needs
    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.verdict import Finding

_MOSTLY_IDLE: Final = 0.5
_BOUND: Final = 1 / 3
_APART: Final = 0.02


@dataclass(frozen=True, slots=True)
class Hosts:
    """Per member: what its host needs for the median step (0: unknown), and its GPU's wait for launches."""

    ranks: tuple[int, ...]
    needs_us: tuple[float, ...]
    launching: tuple[float, ...]  # part of the window; 0 where the file is cut
    named: frozenset[int]  # ranks that are stragglers
    members: tuple[Member, ...]

    @classmethod
    def of(cls, members: Sequence[Member], needs: Needs, late: Sequence[Finding]) -> Self:
        """Gather it; ``late``: the stragglers that were found."""
        subjects = {one.subject for one in late}
        return cls(
            ranks=tuple(member.rank for member in members),
            needs_us=tuple(needs.host_of(at) / 1e3 for at in range(len(members))),
            launching=tuple(0.0 if is_cut(member) else _launching(member) for member in members),
            named=frozenset(member.rank for member in members if f"rank {member.rank}" in subjects),
            members=tuple(members),
        )

    def why(self, waits: int, late: int) -> str:
        """Say why one member waits for another, where it is their hosts; "" where it cannot be told."""
        one, two = self.ranks[waits], self.ranks[late]
        own, other = self.needs_us[waits], self.needs_us[late]
        if two in self.named:
            return f" Rank {two} is the straggler."
        if not own or not other:
            return ""
        both = f"{time_us(other)}, against {time_us(own)}"
        if other - own < _APART * other:
            more = "no more" if other <= own else "hardly more"
            return (
                f" The host of rank {two} needs {more} than that of rank {one} for a step ({both}), so that "
                "no rank is slower: they come late in different steps, or at different times of a step."
            )
        idle = self.launching[late]
        gpu = (
            f", and its GPU is idle between launches {percent(100 * idle)} of the time: the collectives of "
            f"rank {one} wait with a GPU that would else be idle"
            if idle >= _MOSTLY_IDLE
            else ""
        )
        return (
            f" The host of rank {two} needs {time_us(other - own)} more a step ({both}), "
            f"{self._with_what(waits, late)}{gpu}. That costs no more than the hosts differ by."
        )

    def _with_what(self, waits: int, late: int) -> str:
        """Say what one host does longer than the other."""
        two = self.members[late], self.members[waits]
        more = self.needs_us[late] - self.needs_us[waits]
        reason = blame(two[0], two, "host", excess_us=more, part=1.0, late=Late(frozenset(), {}))
        return reason.phrase(f"rank {two[1].rank}") if reason.is_told else "spread over all ops"

    def bound(self) -> tuple[int, float] | None:
        """Return the rank whose GPU waits most for launches, and which part of the time; None: none does."""
        most = max(range(len(self.ranks)), key=lambda at: self.launching[at])
        return (self.ranks[most], self.launching[most]) if self.launching[most] >= _BOUND else None


def _launching(member: Member) -> float:
    """Return the part of the window in which a rank's GPU waits for ordinary launches."""
    parts = [part for file in member.files for part in file.breakdown]
    window = sum(part.window_ns for part in parts)
    return sum(part.idle_ns.get("launch", 0) for part in parts) / window if window else 0.0
