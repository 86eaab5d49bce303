"""What a comparison of two traces says: scopes side by side, and what in them changed, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tracehunch.compare.environment import EnvironmentDiff
    from tracehunch.facts.model import Fact, ScopeFacts
    from tracehunch.kernels.identity import Identity
    from tracehunch.verdict import CannotTell, Confidence, Finding, Look, Severity

UseKind = Literal["kernel", "memcpy", "memset", "op", "call"]
"""GPU activities; and on the host ops, and calls of the CUDA or HIP runtime."""

ChangeKind = Literal[
    "went", "appeared", "fewer", "more", "slower", "faster", "kernel", "replaced", "fused", "unfused"
]
"""``kernel``: another kernel for the same op; ``replaced``: other ops do the work of an op."""

Matched = Literal["name", "position", "given"]
Outcome = Literal["same", "noise", "more", "less", "other", "unknown"]
"""``noise``: the difference lies within the spread of the calls; ``unknown``: one side does not tell."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Microseconds a call: the median over the calls, the lowest and the highest, and how many calls."""

    value: float
    low: float
    high: float
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Use:
    """Everything of one name under one path of ops within a scope."""

    name: str
    kind: UseKind
    path: tuple[str, ...]
    """Ops from the annotation down to the one that launched it; () where unknown."""
    per_call: int | float
    time: Spread
    identity: Identity | None
    rows: tuple[int, ...]
    """Rows of the trace, the first so many."""

    @property
    def op(self) -> str:
        """The op that launched it; "" where unknown."""
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why something changed, as far as the two traces show: a stable id and a sentence."""

    id: str
    text: str
    confidence: Confidence = "high"


@dataclass(frozen=True, slots=True)
class Change:
    """What became of some uses of a scope. ``delta_us`` is per call of the scope, after less before."""

    kind: ChangeKind
    at: tuple[str, ...]
    """The ops that both sides have in common around it; else those of the side that has any."""
    before: tuple[Use, ...]
    after: tuple[Use, ...]
    delta_us: float
    is_noise: bool = False
    """The time differs by no more than it does between calls."""
    causes: tuple[Cause, ...] = ()
    evidence_before: tuple[int, ...] = ()
    evidence_after: tuple[int, ...] = ()
    """Positions in the files' traceEvents, the first so many."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """One fact of a scope on both sides; None where a trace does not show it."""

    key: str
    unit: str
    before: Fact | None
    after: Fact | None
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class ScopePair:
    """A scope of one trace and the scope of the other that it is compared with."""

    before: ScopeFacts
    after: ScopeFacts
    matched: Matched

    @property
    def name(self) -> str:
        """What both are called, or ``attn_fwd -> sdpa_fwd``."""
        first, second = self.before.scope.name, self.after.scope.name
        return first if first == second else f"{first} -> {second}"


@dataclass(frozen=True, slots=True)
class TimeChange:
    """A time that is no fact of one scope alone, on both sides."""

    before: Spread
    after: Spread
    outcome: Outcome

    @property
    def delta_us(self) -> float:
        """After less before."""
        return round(self.after.value - self.before.value, 3)


@dataclass(frozen=True, slots=True)
class ScopeDiff:
    """One pair of scopes.

    ``changes`` are about what no smaller scope of the comparison owns, so that nothing is told twice:
    GPU activities, in traces of a CPU ops. ``host`` is the same of ops and runtime calls, where host times
    changed beyond noise.
    """

    pair: ScopePair
    facts: tuple[FactChange, ...]
    changes: tuple[Change, ...]
    host: tuple[Change, ...] = ()
    time_key: str = "gpu_time"
    """``period`` where nothing else moved."""
    delta_us: float = 0.0
    """By how much ``time_key`` changed, per call; 0 within noise."""
    period: TimeChange | None = None
    """From one call to the next, as they end on host and GPU; None where that cannot be told."""
    outside: TimeChange | None = None
    """Time of a call in which its thread was in no op and no call of the runtime."""

    def fact(self, key: str) -> FactChange | None:
        """Return what became of a fact."""
        return next((one for one in self.facts if one.key == key), None)


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A finding on both sides (grown, shrunk), or on one."""

    before: Finding | None
    after: Finding | None


@dataclass(frozen=True, slots=True)
class Regression:
    """What is worse after than before: what ``--fail-on`` looks at."""

    severity: Severity
    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    """Two traces compared; ``scopes`` by time at stake."""

    before: Look
    after: Look
    environment: EnvironmentDiff
    scopes: tuple[ScopeDiff, ...] = ()
    only_before: tuple[ScopeFacts, ...] = ()
    only_after: tuple[ScopeFacts, ...] = ()
    new: tuple[Finding, ...] = ()
    gone: tuple[Finding, ...] = ()
    grown: tuple[FindingChange, ...] = ()
    notes: tuple[str, ...] = ()
    cannot_tell: tuple[CannotTell, ...] = ()
    regressions: tuple[Regression, ...] = field(default=())
