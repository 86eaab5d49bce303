"""How well predictions agree with what was measured: the figures that the documentation quotes.

    python benchmarks/prediction.py

Times are judged on shapes that the fit did not see: the shapes, sorted, are dealt out in turn into eight
parts, and each part is predicted by a model fitted on the other seven, its ranges as wide as those need.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from attention_fit import (
    FOLDS,
    Measurement,
    all_measurements,
    fit,
    folds,
    left_out,
    the_machine,
    with_ranges,
)

from tracehunch.predict.roofline.time import gpu_time, with_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracehunch.predict.roofline.coefficients import Coefficients

TIE = 1.05
"""Backends within 5 % of the fastest are as fast."""

RIVALS = 3
"""Backends between which there is something to predict."""


def range_us(model: Coefficients, m: Measurement) -> tuple[float, float, float]:
    """Return low, middle and high by a model, as `attention_time` does it with the one that ships."""
    estimate = gpu_time(m.case, the_machine(), model)
    assert estimate is not None
    if m.clock == "host":
        estimate = with_host(m.case, the_machine(), estimate, model)
    return estimate.low_us, estimate.mid_us, estimate.high_us


def fastest(pairs: Iterable[tuple[Measurement, float]]) -> tuple[int, int]:
    """Return on how many calls of three or more backends the predicted fastest is, and how many there are."""
    calls: dict[tuple[object, ...], dict[str, list[tuple[float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for m, middle in pairs:
        calls[m.call][m.case.backend].append((m.us, middle))
    right = total = 0
    for backends in calls.values():
        if len(backends) >= RIVALS:
            measured = {name: float(np.median([us for us, _ in runs])) for name, runs in backends.items()}
            chosen = min(backends, key=lambda name: backends[name][0][1])
            total += 1
            right += measured[chosen] <= TIE * min(measured.values())
    return right, total


def attention_time_report(
    residuals: Sequence[tuple[Measurement, float, float]] | None = None, model: Coefficients | None = None
) -> None:
    """Print the agreement of attention's predicted times on shapes left out of the fit."""
    residuals = left_out() if residuals is None else residuals
    model = fit(all_measurements()) if model is None else model
    print(f"attention's time, shapes left out of the fit ({FOLDS} parts, split by shape)")
    print(f"{'':34} {'n':>4} {'median':>7} {'90 %':>7} {'in range':>9} {'width':>6}")
    judged = []
    for part in folds([m for m, _, _ in residuals]):
        # the range's width, too, comes from the other shapes
        ranged = with_ranges(model, [entry for entry in residuals if entry[0].shape not in part])
        judged += [(m, middle, *_ends(ranged, m, middle)) for m, middle, _ in residuals if m.shape in part]
    groups: dict[str, list[tuple[Measurement, float, float, float]]] = defaultdict(list)
    for entry in judged:
        m = entry[0]
        groups[f"{m.clock} {m.case.direction} {m.case.backend}"].append(entry)
        groups[f"{m.clock} {m.case.direction}"].append(entry)
        if m.clock == "host":
            groups["benchmarks (host)"].append(entry)
    for name in sorted(groups):
        print(_line(name, groups[name]))
    for clock, backward in (("host", False), ("host", True), ("gpu", False)):
        right, total = fastest(
            (m, middle) for m, middle, _ in residuals if m.clock == clock and m.case.backward == backward
        )
        print(
            f"fastest of three or more, {clock} {'backward' if backward else 'forward'}: {right} of {total}"
        )


def _ends(model: Coefficients, m: Measurement, middle: float) -> tuple[float, float]:
    """Return the range around a middle that the model gives around its own."""
    low, own, high = range_us(model, m)
    return middle * low / own, middle * high / own


def _line(name: str, entries: Sequence[tuple[Measurement, float, float, float]]) -> str:
    errors = [abs(middle / m.us - 1) for m, middle, _, _ in entries]
    inside = [low <= m.us <= high for m, _, low, high in entries]
    widths = [high / low for _, _, low, high in entries]
    return (
        f"  {name:32} {len(entries):4} {np.median(errors):7.1%} {np.quantile(errors, 0.9):7.1%} "
        f"{np.mean(inside):9.1%} {np.median(widths):6.2f}"
    )


def main() -> int:
    """Print all figures."""
    attention_time_report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
