"""How well predicted times of attention agree with what was measured: the figures of the documentation.

    python benchmarks/prediction.py

Times are judged on shapes that the fit did not see: the shapes, sorted, are dealt out in turn into eight
parts, and each part is predicted by a model fitted on the other seven, its ranges as wide as those need.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from attention_fit import FOLDS, folds, left_out
from attention_ranges import Residual, with_ranges
from attention_truth import Measured, the_machine

from tracehunch.predict.roofline.host import with_host
from tracehunch.predict.roofline.price import step_us
from tracehunch.predict.roofline.time import AttentionTime, summed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracehunch.predict.roofline.coefficients import Coefficients

TIE = 1.05
"""Backends within 5 % of the fastest are as fast."""

RIVALS = 3
"""Backends between which there is something to predict."""

SOURCES = {
    "timing": "benchmarks",
    "activities": "traces",
    "more": "traces, any masks",
    "traces": "recorded models",
}
Judged = tuple[Measured, AttentionTime]


def told(model: Coefficients, m: Measured) -> AttentionTime:
    """Return the time by a model, as `launched_time` does it with the one that ships."""
    launched = m.launched()
    if m.source == "traces":
        launched = replace(launched, steps=tuple(step for step in launched.steps if step.fused is not None))
    steps_us = [step_us(step, the_machine(), model) or 0.0 for step in launched.steps]
    estimate = summed(launched, steps_us, the_machine(), model)
    return with_host(launched, the_machine(), estimate, model) if m.clock == "host" else estimate


def judged(residuals: Sequence[Residual]) -> list[Judged]:
    """Return each measurement with its time by a model, and ranges, that never saw its shape."""
    found: list[Judged] = []
    for part in folds([r.measured for r in residuals]):
        inside = [r for r in residuals if r.measured.shape in part]
        model = with_ranges(inside[0].model, [r for r in residuals if r.measured.shape not in part])
        found += [(r.measured, told(model, r.measured)) for r in inside]
    return found


def fastest(entries: Iterable[Judged], least_us: float = 0.0) -> tuple[int, int]:
    """Return on how many calls of three or more backends the predicted fastest is, and how many there are.

    `least_us` leaves out calls whose fastest took less.
    """
    calls: dict[tuple[object, ...], dict[str, list[tuple[float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for m, time in entries:
        calls[m.asked][m.variant].append((m.us, time.mid_us))
    right = total = 0
    for backends in calls.values():
        measured = {name: float(np.median([us for us, _ in runs])) for name, runs in backends.items()}
        best = min(measured.values())
        if len(backends) >= RIVALS and best >= least_us:
            chosen = min(backends, key=lambda name: backends[name][0][1])
            total += 1
            right += measured[chosen] <= TIE * best
    return right, total


def attention_time_report(residuals: Sequence[Residual] | None = None) -> None:
    """Print the agreement of attention's predicted times on shapes left out of the fit."""
    entries = judged(left_out() if residuals is None else residuals)
    print(f"attention's time, shapes left out of the fit ({FOLDS} parts, split by shape)")
    print(f"{'':42} {'n':>4} {'median':>7} {'90 %':>7} {'in range':>9} {'width':>6}")
    groups: dict[str, list[Judged]] = defaultdict(list)
    for m, time in entries:
        name = f"{SOURCES[m.source]}, {m.direction}"
        groups[name].append((m, time))
        groups[f"{name} {m.variant}"].append((m, time))
        if m.clock == "host":
            groups["benchmarks"].append((m, time))
    for name in sorted(groups):
        print(_line(name, groups[name]))
    for source, backward in (("timing", False), ("timing", True), ("activities", False), ("more", False)):
        mine = [(m, time) for m, time in entries if m.source == source and m.backward == backward]
        name = f"{SOURCES[source]}, {'backward' if backward else 'forward'}"
        words = [f"{right} of {n}" for right, n in (fastest(mine), fastest(mine, 60.0))]
        print(f"fastest of three or more, {name}: {words[0]}; where it takes 60 us or more {words[1]}")


def _line(name: str, entries: Sequence[Judged]) -> str:
    errors = [abs(time.mid_us / m.us - 1) for m, time in entries]
    inside = [time.low_us <= m.us <= time.high_us for m, time in entries]
    widths = [time.range.width for _, time in entries]
    return (
        f"  {name:40} {len(entries):4} {np.median(errors):7.1%} {np.quantile(errors, 0.9):7.1%} "
        f"{np.mean(inside):9.1%} {np.median(widths):6.2f}"
    )


def main() -> int:
    """Print all figures."""
    attention_time_report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
