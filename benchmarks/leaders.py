"""Which called ops lead attention by hand, by predicted shares of GPU time, against what an H200 measured.

    python benchmarks/leaders.py

Shares that are measured within 5 points of each other are a tie: either order is right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from attention_truth import ENVIRONMENT, activities, more_activities, steps_of

from tracehunch.predict.forecast import forecast, leaders, shares

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attention_truth import Measured

TIE = 0.05
NAMED = 2
"""Leading ops that a guess names."""


def measured_shares(m: Measured) -> dict[str, float]:
    """Return the share of GPU time of each op that is called, its activities told by their order."""
    by_op: Counter[str] = Counter()
    ran = list(m.single)
    for part in m.parts():
        said = part.activities
        count = len(said.kernels or ()) + len(said.copies or ()) + (said.memsets or 0)
        by_op[part.called] += sum(us for _, us in ran[:count])
        ran = ran[count:]
    whole = sum(by_op.values())
    return {op: us / whole for op, us in by_op.items()}


def agreement(rows: Iterable[Measured]) -> Counter[str]:
    """Count the forwards of attention by hand, and what was told of them."""
    found: Counter[str] = Counter()
    for m in rows:
        if m.backward or m.variant not in ("naive", "naive_inplace") or not steps_of(m):
            continue
        seen = measured_shares(m)
        order = sorted(seen, key=lambda op: -seen[op])
        said = forecast(m.variant, m.call, ENVIRONMENT, clock="gpu").forward
        told = shares(said)
        tied = [seen[op] >= seen[order[at]] - TIE for at, (op, _) in enumerate(told[:NAMED])]
        named = leaders(said)[:NAMED]
        found["calls"] += 1
        found["first"] += tied[0]
        found["first two"] += all(tied)
        found["no share off by 5 points"] += max(abs(seen[op] - share) for op, share in told) < TIE
        found["leaders claimed"] += bool(named)
        found["claimed and right"] += bool(named) and list(named) == order[: len(named)]
    return found


def main() -> None:
    """Print all figures, by where the calls were measured."""
    sources: dict[str, list[Measured]] = defaultdict(list)
    for m in [*activities(), *more_activities()]:
        sources[m.source].append(m)
    for source, rows in sources.items():
        print(source, dict(agreement(rows)))


if __name__ == "__main__":
    main()
