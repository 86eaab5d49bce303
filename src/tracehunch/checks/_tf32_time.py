"""How long float32 matrix products would take as TF32, on the same GPU's tensor cores.

Held against an H200: products whose rows are multiples of 16 bytes run at 45 to 80 % of TF32's peak, others
down to 20 %, and large ones that wait for memory move 55 to 90 % of its bandwidth.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._products import Product, product_of
from tracehunch.checks._scopes import durations_us
from tracehunch.facts.model import Facts
from tracehunch.hardware import Gpu
from tracehunch.trace.model import Float64, Int64
from tracehunch.tree import NONE

_OF_PEAK: Final = (0.8, 0.45)
_OF_PEAK_UNALIGNED: Final = (0.5, 0.2)
_OF_BANDWIDTH: Final = (0.9, 0.55)
_FIXED_US: Final = (2.0, 6.0)
"""What a product takes at least, however small: nothing is to be gained from tiny ones."""
_OF_FP32_PEAK: Final = (0.9, 0.6)
"""Share of float32's peak at which its products run, from which their FLOPs follow without shapes."""
_HALF_AT_MOST: Final = 0.5
"""Without shapes, products that wait for memory cannot be told: no more than half of the time is promised."""
_ALIGNED: Final = 4
"""Elements of float32 in 16 bytes."""


def tf32_times_us(facts: Facts, rows: Int64, gpu: Gpu | None) -> tuple[Float64, Float64]:
    """Return the least and the most that each product is expected to take, in us.

    Of a GPU that is not known, or has no TF32, nothing but half the time can be said.
    """
    spent = durations_us(facts.tree.trace, rows)
    peak = None if gpu is None else gpu.matrix_peak("tf32")
    if gpu is None or peak is None:
        return np.zeros(rows.size), spent * _HALF_AT_MOST
    known: dict[int, Product | None] = {}
    low, high = np.empty(rows.size), np.empty(rows.size)
    for at, op in enumerate(facts.tree.op[rows].tolist()):
        if op not in known:
            known[op] = None if op == NONE else product_of(facts.tree.trace, op)
        product = known[op]
        if product is None:
            part = gpu.fp32_flops / peak
            low[at] = spent[at] * part * _OF_FP32_PEAK[1] / _OF_PEAK[0]
            high[at] = max(
                spent[at] * max(part * _OF_FP32_PEAK[0] / _OF_PEAK[1], _HALF_AT_MOST), _FIXED_US[1]
            )
        else:
            low[at], high[at] = tf32_range_us(product, peak, gpu.bandwidth)
    return low, np.minimum(high, spent)


def tf32_range_us(product: Product, peak: float, bandwidth: float) -> NDArray[np.float64]:
    """Return the least and the most that a product takes; ``peak`` FLOP/s of TF32, ``bandwidth`` bytes/s."""
    aligned = product.inner % _ALIGNED == 0 and product.columns % _ALIGNED == 0
    shares = _OF_PEAK if aligned else _OF_PEAK_UNALIGNED
    flops, moved = product.flops, product.least_bytes(4)
    return np.array(
        [
            max(flops / (share * peak), moved / (of_bandwidth * bandwidth)) * 1e6 + fixed
            for share, of_bandwidth, fixed in zip(shares, _OF_BANDWIDTH, _FIXED_US, strict=True)
        ]
    )
