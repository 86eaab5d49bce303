"""Fact: one measured key of one scope, with its spread over the calls and the events it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tracehunch.kernels.identity import Identity
from tracehunch.tree import Scope, Tree
from tracehunch.units import plural

Value = int | float | str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """``value`` is per call: the median over the calls; ``low``/``high`` the extremes, None for text.

    Times are float microseconds and their JSON key ends in ``_us`` (unit "us"); counts are ints (unit
    "count"); bytes ints (unit "bytes"); ratios floats (unit "ratio" or "percent"); text (unit "text").
    A fact that cannot be known does not exist: it is absent from the mapping, never zero or None.
    """

    key: str
    value: Value
    unit: str
    low: int | float | None = None
    high: int | float | None = None
    rows: tuple[int, ...] = ()
    """Rows (not event positions) of the first call that the value rests on; capped for long lists."""


@dataclass(frozen=True, slots=True)
class KernelWork:
    """What one distinct GPU activity has to compute and to move within a scope, and how near a peak it gets.

    Numbers are None where they are not known; ``why`` says why then. A helper of an op whose work another
    kernel has (it turns a layout, it adds partial sums) has none of its own, and is bound by memory.
    """

    flops: int | None = None  # per call of the scope (lower median)
    hbm_bytes: int | None = None  # per call of the scope (lower median)
    achieved_flops: int | None = None  # FLOP/s over all of its time
    achieved_bandwidth: int | None = None  # bytes/s over all of its time
    bound: Literal["compute", "memory"] | None = None  # by FLOPs per byte against the GPU's ridge
    percent_of_peak: float | None = None  # of the peak that bounds it, by the data sheet
    why: str = ""


@dataclass(frozen=True, slots=True)
class KernelUse:
    """One distinct GPU activity name under one op within a scope."""

    name: str
    kind: str  # kernel | memcpy | memset
    op: str  # innermost op that launched it; "" where unknown
    identity: Identity
    per_call: (
        int | float
    )  # launches a call (lower median; float mean only where calls differ and the median is 0)
    total: int  # over all calls
    gpu_time_us: float  # per call (median of the calls' sums)
    total_us: float
    occupancy_percent: float | None  # recomputed; None where it cannot be
    recorded_occupancy_percent: float | None
    rows: tuple[int, ...]
    work: KernelWork = field(default_factory=KernelWork)


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """All facts of one scope; ``own_thread`` holds those that depend on whose thread's launches count."""

    scope: Scope
    facts: Mapping[str, Fact]
    own_thread: Mapping[str, Fact]
    kernels: tuple[KernelUse, ...]  # by GPU time, longest first
    percent_of_peak: Mapping[str, float] = field(default_factory=dict)
    """Key of a rate, as "achieved_flops" -> percent of the GPU's data-sheet peak; absent where not known."""

    def __repr__(self) -> str:
        calls, facts = plural(len(self.scope.calls), "call"), plural(len(self.facts), "fact")
        return f"<ScopeFacts of {self.scope.name}: {calls}, {facts}, {plural(len(self.kernels), 'kernel')}>"

    def value(self, key: str) -> Value | None:
        """Return the value of a key, None where the trace does not show it."""
        fact = self.facts.get(key)
        return None if fact is None else fact.value


@dataclass(frozen=True, slots=True)
class Facts:
    """What one trace shows: the scopes in report order and the file-wide counts."""

    tree: Tree
    scopes: tuple[ScopeFacts, ...]
    counts: Mapping[str, object]  # the names of ``trace.counts`` in the JSON

    def __repr__(self) -> str:
        return f"<Facts of {self.tree.trace.label}: {plural(len(self.scopes), 'scope')}>"

    def scope(self, name: str) -> ScopeFacts | None:
        """Return the facts of a scope by name, annotations before modules and steps."""
        return next((s for s in self.scopes if s.scope.name == name), None)
