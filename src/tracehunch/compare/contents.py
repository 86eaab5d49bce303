"""What the calls of scopes consist of on one side of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehunch.compare.placement import calls_of
from tracehunch.compare.rhythm import outsides, periods
from tracehunch.compare.uses import gpu_items, host_items, uses_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Spread, Use
    from tracehunch.facts.model import Facts, ScopeFacts


@dataclass(frozen=True, slots=True)
class Contents:
    """One scope: GPU activities (ops, in a comparison of CPUs), what the host does, and its calls' times."""

    uses: Sequence[Use]
    host: Sequence[Use]
    period: Spread | None
    outside: Spread | None


def contents_of(facts: Facts, scopes: Sequence[ScopeFacts], *, on_gpu: bool) -> list[Contents]:
    """Return what each scope consists of that no smaller one of them owns."""
    calls = calls_of(facts, scopes)
    host = uses_of(facts, calls, host_items(facts, calls, with_runtime=on_gpu))
    uses = uses_of(facts, calls, gpu_items(facts, calls)) if on_gpu else host
    times = periods(facts, calls), outsides(facts, calls)
    return [Contents(*one) for one in zip(uses, host, *times, strict=True)]
