"""Fit how long kernels take that move memory: prints predict/ops/times.toml.

    python benchmarks/fit_memory.py > src/tracehunch/predict/ops/times.toml

Each family's coefficients are fitted on half of the shapes; the errors and ranges are of the other half.
Calls
in traces of models count three times as much as all others of a family together: there the GPU is warm,
and what
a kernel reads was just written. A reduction waits for loads one after the other, where it matters most
whether they come from memory: of reductions measured alone, it is taken that they do.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from calls_in_models import in_models
from fit_convolutions import measured as convolutions
from fit_convolutions import measured_backward
from measured_ops import NAMES, measured_ops
from more_ops import measured as more_ops
from reductions_in_traces import in_traces
from simplex import minimise

from tracehunch.predict.environment import environment
from tracehunch.predict.ops.call import steps_of
from tracehunch.predict.ops.convolution import output
from tracehunch.predict.ops.times import found_in_cache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tracehunch.predict.ops.steps import Step

    Table = NDArray[np.float64]

NOTES = {
    "vectorized": "element by element, in order",
    "vectorized_two": "the same of two tensors or more",
    "vectorized_heavy": "the same with functions that take longer than memory",
    "cast": "element by element, converting",
    "cast_narrow": "from float32 to 16 bits, in vectors",
    "cat_strided": "putting together what is not contiguous",
    "strided": "broadcast, sliced or otherwise not in order",
    "transposed": "neighbours read are not neighbours written",
    "tiny": "bookkeeping of larger algorithms",
    "select": "CUB's passes",
    "scan_across": "scans over a dimension that is not the last",
    "moments": "mean and variance of rows",
    "conv": "items are thousands of operations, also below",
    "channels": "sums of channels of images, a block for each",
    "channels_last": "sums of channels that lie side by side",
    "lists": "kernels over lists of tensors",
}
LARGE = 10  # us
HEAD = """\
# How long kernels, copies and memsets take that move memory, printed by benchmarks/fit_memory.py: start +
# max(bytes / (share of the bandwidth, times cached for what fits in cache), items * item_ns / SMs)
# + serial * serial_ns; loads that wait, of serial_ns, or far_ns more where not in cache, count with the
# bytes as sides of a right angle; low and high hold nine in ten of the shapes that the fit did not see.
source = "{count:,} launches of 200 operations and 30 models, profiled on an H200 with torch 2.11.0+cu130\""""
TAIL = """
[families.memcpy_htod]
checked = "not measured: as the other direction"
start_us = 1.54
share = 0.00621
cached = 1.35
item_ns = 0
serial_ns = 0
low = 0.30
high = 3.00

[families.rnn_persistent]
checked = "a rule of thumb from some hundred layers"
start_us = 5
share = 0.2
cached = 1.0
item_ns = 0
serial_ns = 6
low = 0.40
high = 2.50

[families.memcpy_htod_pageable]
checked = "12.3 GB/s in one trace of 16 MiB; 3 to 12 GB/s in others"
start_us = 4
share = 0.0024
cached = 1.0
item_ns = 0
serial_ns = 0
low = 0.60
high = 3.00

[families.memcpy_dtoh_pageable]
checked = "as the other direction"
start_us = 4
share = 0.0022
cached = 1.0
item_ns = 0
serial_ns = 0
low = 0.60
high = 4.00"""
OF_MODELS = 3.0
LOADED = ("reduce", "reduce_across", "reduce_indices", "reduce_variances")
"""Families whose threads wait for memory, far_ns longer where the cache does not have it."""
READ = 0.75
"""Share of the bandwidth to which reductions are held, as the largest sums were read: many loads of
short rows, in models, look as if memory was slow."""
FEW = 8
"""Calls in models that a family has at least for them to count more."""
ENV = environment("h200", "2.11")


def families() -> dict[str, Table]:
    """Return bytes, items, serial items, us, half of the shapes, weight, part in cache, and loads."""
    assert ENV.gpu is not None
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for shape, steps, ran, in_model in launches():
        if len(steps) == len(ran) and all(map(alike, steps, ran)):
            half = zlib.crc32(shape.encode()) % 2
            for step, (_, us) in zip(steps, ran, strict=True):
                found = found_in_cache(step.bytes, ENV.gpu) if in_model or step.family not in LOADED else 0
                size = (step.bytes, step.items, step.serial)
                rows[step.family].append((*size, us, half, in_model, found, step.loads))
    return {name: weighed(np.array(values)) for name, values in sorted(rows.items())}


def weighed(table: Table) -> Table:
    """Let calls in models count more than all others, where there are some."""
    of_models = table[:, 5] > 0
    number = int(of_models.sum())
    table[:, 5] = 1
    if number >= FEW and number < len(table):
        table[of_models, 5] = max(1.0, OF_MODELS * (len(table) - number) / number)
    return table


def alike(step: Step, ran: tuple[str, float]) -> bool:
    """Whether an activity is the launch expected at its place, as far as names tell."""
    turns = any(word in ran[0] for word in ("nchwToNhwc", "nhwcToNchw", "Transform"))
    return (
        bool(step.family)
        and (step.kind == "memset") == ran[0].startswith("Memset")
        and (step.algorithm not in ("conv", "conv-backward") or not turns)
        and (step.algorithm != "layout-transform" or turns)
    )


def launches() -> Iterator[tuple[str, Sequence[Step], Sequence[tuple[str, float]], bool]]:
    """Yield the shape, the launches expected, those that ran, and whether a model made the call."""
    for one in measured_ops():
        if one.op in NAMES:
            yield repr(one.x.shape), one.steps(ENV), one.ran, False
    for other in more_ops():
        steps = [step for part in other.parts for step in steps_of(*part, ENV)]
        yield repr([tensors[0].shape for _, tensors, _ in other.parts]), steps, other.activities, False
    for call in in_models():
        yield repr(call.tensors), call.steps, call.ran, True
    for one in in_traces():
        yield repr(one.tensor.shape), [one.step], [("reduce_kernel", one.us)], True
    for conv in convolutions():
        shapes = [one.shape for one in conv.call.tensors[:2]]
        yield (
            repr(shapes),
            steps_of("convolution", conv.call.tensors, conv.call.options, ENV),
            conv.ran,
            False,
        )
    for of, conv in measured_backward():
        one, weight = conv.call.tensors
        grad = output(conv.call, transposed=False)
        asked = {**conv.call.options, "output_mask": (of == "input", of == "weight", False)}
        steps = steps_of("convolution_backward", (grad, one, weight), asked, ENV)
        yield repr([one.shape, weight.shape]), steps, conv.ran, False


def time_us(x: Table, t: Table) -> Table:
    """Return predicted microseconds for logarithms of the coefficients."""
    assert ENV.gpu is not None
    start, share, cached, item, serial, far = (*np.exp(np.clip(x, -9, 9)), 0.0)[:6]
    rate = share * ENV.gpu.bandwidth / 1e6
    found = t[:, 6]
    moving = t[:, 0] * (found / (rate * cached) + (1 - found) / rate)
    longest = np.maximum(moving, t[:, 1] * item / (ENV.gpu.sms * 1e3))
    waiting = (serial + far * (1 - t[:, 6])) * t[:, 7] / 1e3
    result: Table = start + np.hypot(longest, waiting) + serial * t[:, 2] / 1e3
    return result


def as_told(t: Table) -> Table:
    """Return the same with the part in cache that a guess says, which does not know what ran before."""
    assert ENV.gpu is not None
    told = t.copy()
    told[:, 6] = [found_in_cache(int(moved), ENV.gpu) for moved in t[:, 0]]
    return told


def fit(t: Table, *, loaded: bool) -> Table:
    """Return the logarithms of a family's coefficients, held weakly to plausible values."""

    def cost(x: Table) -> float:
        off = np.average(np.abs(np.log(time_us(x, t) / t[:, 3])), weights=t[:, 5])
        held = 0.05 * max(0.0, x[1]) ** 2 + 0.001 * (x[2] - 0.3) ** 2 + 1e-4 * (x[3] ** 2 + x[4] ** 2)
        held += (x[1] - np.log(READ)) ** 2 if loaded else 0.0
        return float(off + held)

    starts = ((start, serial) for start in (1.0, 2.5) for serial in (0.3, 300.0))
    more = [600.0] if loaded else []
    tries = [np.log([start, 0.7, 1.3, 0.4, serial, *more]) for start, serial in starts]
    for _ in range(3):
        tries = [minimise(cost, one) for one in tries]
    return min(tries, key=cost)


def report(name: str, table: Table) -> None:
    """Fit a family on one half, judge on the other, print."""
    halves = [table[table[:, 4] == half] for half in (0, 1)]
    if min(map(len, halves)) < FEW:
        halves = [table, table]
    best = fit(halves[0], loaded=name in LOADED)
    start, share, cached, item, serial, *far = np.exp(np.clip(best, -9, 9))
    item = item if table[:, 1].any() else 0.0
    serial = serial if table[:, [2, 7]].any() else 0.0
    other = halves[1]
    ratio = other[:, 3] / time_us(best, other)
    large = other[:, 3] > LARGE
    told = other[:, 3] / time_us(best, as_told(other))
    low, high = np.quantile(np.repeat(told, np.rint(other[:, 5]).astype(int)), [0.05, 0.95])
    seen = "the same" if len(other) == len(table) else "other"
    words = f"{len(other)} of {seen} shapes: off by {np.median(np.abs(ratio - 1)):.0%} at the median"
    if large.any():
        words += f", {np.median(np.abs(ratio[large] - 1)):.0%} above 10 us ({large.sum()})"
    print(f"\n[families.{name}]{'  # ' + NOTES[name] if name in NOTES else ''}")
    print(f'checked = "{words}"')
    print(f"start_us = {start:.3g}\nshare = {share:.3g}\ncached = {cached:.3g}")
    print(f"item_ns = {item:.3g}\nserial_ns = {serial:.3g}")
    for one in far:
        print(f"far_ns = {one:.3g}")
    print(f"low = {min(0.95, max(low, 0.3)):.2f}\nhigh = {max(1.05, min(high, 3.0)):.2f}")


def main() -> None:
    """Fit all families."""
    tables = families()
    print(HEAD.format(count=sum(len(table) for table in tables.values())))
    for name, table in tables.items():
        if not name.startswith("memcpy_htod") and not name.endswith("_pageable"):  # too few: see the tail
            report(name, table)
    print(TAIL)


if __name__ == "__main__":
    main()
