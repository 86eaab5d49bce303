"""What the hosts and GPUs of ranks need, and whether it is the hosts that the GPUs wait for."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median_low
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
    """Per member: what host and GPU need for a median step (0: unknown), and the GPU's wait for launches."""

    ranks: tuple[int, ...]
    needs_us: tuple[float, ...]
    gpu_us: tuple[float, ...]
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
            gpu_us=tuple(needs.gpu_of(at) / 1e3 for at in range(len(members))),
            launching=tuple(0.0 if is_cut(member) else _launching(member) for member in members),
            named=frozenset(member.rank for member in members if f"rank {member.rank}" in subjects),
            members=tuple(members),
        )

    def why(self, waits: int, late: int) -> str:
        """Say why one member waits for another, where it is their hosts or GPUs; "" where nobody knows."""
        one, two = self.ranks[waits], self.ranks[late]
        own, other = self.needs_us[waits], self.needs_us[late]
        if two in self.named:
            return f" Rank {two} is the straggler."
        if not own or not other:
            return ""
        busy, own_busy = self.gpu_us[late], self.gpu_us[waits]
        if busy - own_busy > max(_APART * busy, other - own):
            more = f"{time_us(busy - own_busy)} more a step than that of rank {one}"
            both = f"{time_us(busy)}, against {time_us(own_busy)}, without communication"
            return f" The GPU of rank {two} needs {more} ({both})."
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

    def slowest(self, least_us: float) -> str:
        """Name the rank whose GPU has most to do in a pipeline, if by so much; "" where none has."""
        most = max(range(len(self.ranks)), key=lambda at: self.gpu_us[at])
        others = [us for at, us in enumerate(self.gpu_us) if at != most and us]
        if not others or self.gpu_us[most] - median_low(others) < least_us:
            return ""
        needs, usual = time_us(self.gpu_us[most]), time_us(median_low(others))
        return (
            f" The GPU of rank {self.ranks[most]} has most to do: {needs} a step without communication, "
            f"{usual} on the median of the others. A pipeline is as fast as its slowest stage."
        )

    def bound(self) -> tuple[int, float] | None:
        """Return the rank whose GPU waits most for launches, and which part of the time; None: none does."""
        most = max(range(len(self.ranks)), key=lambda at: self.launching[at])
        return (self.ranks[most], self.launching[most]) if self.launching[most] >= _BOUND else None


def _launching(member: Member) -> float:
    """Return the part of the window in which a rank's GPU waits for ordinary launches."""
    parts = [part for file in member.files for part in file.breakdown]
    window = sum(part.window_ns for part in parts)
    return sum(part.idle_ns.get("launch", 0) for part in parts) / window if window else 0.0
