"""Fit how long kernels take that move memory: prints predict/ops/times.toml.

    python benchmarks/fit_memory.py > src/tracehunch/predict/ops/times.toml

Each family's coefficients are fitted on half of the shapes; the errors and ranges are of the other half.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from measured_ops import NAMES, measured_ops
from simplex import minimise

from tracehunch.predict.environment import environment
from tracehunch.predict.ops.times import CACHED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Table = NDArray[np.float64]

NOTES = {
    "vectorized": "element by element, in order",
    "cast": "element by element, converting",
    "strided": "broadcast, sliced or otherwise not in order",
    "transposed": "neighbours read are not neighbours written",
    "tiny": "bookkeeping of larger algorithms",
    "select": "CUB's passes",
    "scan_across": "scans over a dimension that is not the last",
    "moments": "mean and variance of rows that are no multiple of four",
}
LARGE = 10  # us
HEAD = """\
# How long kernels, copies and memsets take that move memory, printed by benchmarks/fit_memory.py: start +
# max(bytes / (share of the bandwidth, times cached for what fits in cache), items * item_ns / SMs)
# + serial * serial_ns; low and high hold nine in ten of the shapes that the fit did not see.
source = "{count:,} launches of 160 operations, profiled on an H200 with torch 2.11.0+cu130\""""
TAIL = """
[families.conv_half]  # items are thousands of operations
checked = "not fitted: what convolutions usually reach"
start_us = 4
share = 0.5
cached = 1
item_ns = 0.53
serial_ns = 0
low = 0.40
high = 3.00

[families.conv]  # items are thousands of operations
checked = "not fitted: what convolutions usually reach"
start_us = 4
share = 0.5
cached = 1
item_ns = 1.1
serial_ns = 0
low = 0.40
high = 3.00

[families.memcpy_htod]
checked = "not measured: as the other direction"
start_us = 1.54
share = 0.00621
cached = 1.35
item_ns = 0
serial_ns = 0
low = 0.30
high = 3.00"""
ENV = environment("h200", "2.11")


def families() -> dict[str, Table]:
    """Return bytes, items, serial items, microseconds and half of the shapes, by family."""
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for one in measured_ops():
        if one.op not in NAMES:
            continue
        steps = one.steps(ENV)
        if len(steps) == len(one.ran):
            half = zlib.crc32(repr(one.x.shape).encode()) % 2
            for step, (_, us) in zip(steps, one.ran, strict=True):
                rows[step.family].append((step.bytes, step.items, step.serial, us, half))
    return {name: np.array(values) for name, values in sorted(rows.items())}


def time_us(x: Table, t: Table) -> Table:
    """Return predicted microseconds for logarithms of the coefficients."""
    assert ENV.gpu is not None
    start, share, cached, item, serial = np.exp(np.clip(x, -9, 9))
    rate = share * ENV.gpu.bandwidth / 1e6
    cache = CACHED * (ENV.gpu.l2_bytes or 0)
    moving = np.minimum(t[:, 0], cache) / (rate * cached) + np.maximum(t[:, 0] - cache, 0) / rate
    longest = np.maximum(moving, t[:, 1] * item / (ENV.gpu.sms * 1e3))
    result: Table = start + longest + serial * t[:, 2] / 1e3
    return result


def fit(t: Table) -> Table:
    """Return the logarithms of a family's coefficients, held weakly to plausible values."""

    def cost(x: Table) -> float:
        off = np.abs(np.log(time_us(x, t) / t[:, 3])).mean()
        held = 0.05 * max(0.0, x[1]) ** 2 + 0.001 * (x[2] - 0.3) ** 2 + 1e-4 * (x[3] ** 2 + x[4] ** 2)
        return float(off + held)

    starts = ((start, serial) for start in (1.0, 2.5) for serial in (0.3, 300.0))
    tries = [np.log([start, 0.7, 1.3, 0.4, serial]) for start, serial in starts]
    for _ in range(3):
        tries = [minimise(cost, one) for one in tries]
    return min(tries, key=cost)


def report(name: str, table: Table) -> None:
    """Fit a family on one half, judge on the other, print."""
    best = fit(table[table[:, 4] == 0])
    start, share, cached, item, serial = np.exp(np.clip(best, -9, 9))
    item = item if table[:, 1].any() else 0.0
    serial = serial if table[:, 2].any() else 0.0
    other = table[table[:, 4] == 1]
    ratio = other[:, 3] / time_us(best, other)
    large = other[:, 3] > LARGE
    low, high = np.quantile(ratio, [0.05, 0.95])
    words = f"{len(other)} of other shapes: off by {np.median(np.abs(ratio - 1)):.0%} at the median"
    if large.any():
        words += f", {np.median(np.abs(ratio[large] - 1)):.0%} above 10 us ({large.sum()})"
    print(f"\n[families.{name}]{'  # ' + NOTES[name] if name in NOTES else ''}")
    print(f'checked = "{words}"')
    print(f"start_us = {start:.3g}\nshare = {share:.3g}\ncached = {cached:.3g}")
    print(f"item_ns = {item:.3g}\nserial_ns = {serial:.3g}")
    print(f"low = {min(0.95, max(low, 0.3)):.2f}\nhigh = {max(1.05, min(high, 3.0)):.2f}")


def main() -> None:
    """Fit all families."""
    tables = families()
    print(HEAD.format(count=sum(len(table) for table in tables.values())))
    for name, table in tables.items():
        report(name, table)
    print(TAIL)


if __name__ == "__main__":
    main()
