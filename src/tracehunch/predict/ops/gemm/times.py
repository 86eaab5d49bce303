"""How long a matrix product takes on the GPU: cycles of the kernel chosen, or what its family reaches."""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final, cast

from tracehunch.hardware import Gpu
from tracehunch.predict.activities import TimeRange
from tracehunch.predict.ops.dtypes import HALF, size_of
from tracehunch.predict.ops.gemm.nvjet import Choice
from tracehunch.predict.ops.gemm.product import Product

NVJET_FIELDS: Final = (
    "launch_us", "clock_ghz", "step", "load", "multicast", "tile", "store", "bandwidth", "peak", "reduce_us",
    "reduce_bytes",
)  # fmt: skip
"""Coefficients of nvjet kernels: cycles of a step's and a tile's overhead, bytes loaded and elements stored
in a cycle, shares of the data sheet's bandwidth and peak, and what a reduction costs."""

TILED_FIELDS: Final = (
    "launch_us", "bandwidth", "written", "serial_ns", "further_us", "tile128", "tile64", "tile32",
)  # fmt: skip
"""Coefficients of other kernels of matrices: shares of the bandwidth for all bytes, and for the result, which
is written after the arithmetic; what a tile takes for each element of the inner dimension at least, what each
further kernel takes, and the share of an SM's peak that tiles of a side reach."""

OTHER_FIELDS: Final = ("launch_us", "efficiency", "bandwidth", "serial_ns", "further_us")
"""Coefficients of products with a vector: shares of peak and bandwidth, time for each element of the inner
dimension and for each further kernel."""

_MEGA: Final = 1e6  # operations or bytes per second -> per microsecond
_MATRIX_FLOPS: Final = 2048  # multiply-adds of 16-bit types a cycle, of a Hopper SM
_BLOCK: Final = 64  # elements of K in one step of an nvjet kernel's main loop
_EDGE: Final = 32  # the least side of a tile: smaller products are padded to it
_SHARP: Final = 8  # how sharply the slower of arithmetic and memory wins
_TILES: Final = (128, 64, 32)
_GENTLE: Final = 4  # the same for kernels that overlap them less
_UNBATCHED: Final = 2  # alignment of which batches were not measured
_LEAST_PART: Final = 256  # elements of the inner dimension that a part of a split product has at least


@lru_cache(maxsize=1)
def _numbers() -> Mapping[str, Mapping[str, float]]:
    table = tomllib.loads((files(__package__) / "times.toml").read_text(encoding="utf-8"))
    return cast("Mapping[str, Mapping[str, float]]", table)


def nvjet_time(product: Product, choice: Choice, gpu: Gpu) -> TimeRange:
    """Return the time of the chosen nvjet kernel and its reduction."""
    c = _numbers()["nvjet"]
    return _range(nvjet_us(product, choice, gpu, c), c)


def other_time(
    product: Product, kernels: int, gpu: Gpu, *, measured: bool, peak: float | None = None
) -> TimeRange:
    """Return the time of a product on kernels of other families, and their further kernels.

    `peak` in FLOP/s is that of the data type that they multiply in, where it is not the product's own.
    """
    if not measured:
        c = _numbers()["unmeasured"]
        return _range(other_us(product, kernels, gpu, c, peak), c)
    c = _numbers()[family(product)]
    formula = other_us if product.is_vector else tiled_us
    return _range(formula(product, kernels, gpu, c), c)


def family(product: Product) -> str:
    """Return the table of times.toml for a product that nvjet kernels do not take."""
    half = product.dtype in HALF
    if product.is_vector:
        return "half_vector" if half else "fp32_vector"
    if half and product.alignment == _UNBATCHED:
        return "half_2"
    name = f"half_{min(4, product.alignment)}" if half else "fp32"
    return f"{name}_batch" if product.batch > 1 else name


def nvjet_us(product: Product, choice: Choice, gpu: Gpu, c: Mapping[str, float]) -> float:
    """Return microseconds: rounds of tiles, bytes of memory or the power limit, whichever is slowest."""
    first, second = choice.tile
    across, along = choice.cluster
    math = first * second * _BLOCK / _MATRIX_FLOPS + c["step"]
    saved = (1 + (along - 1) * c["multicast"], 1 + (across - 1) * c["multicast"])
    loads = (first / saved[0] + second / saved[1]) * 2 * _BLOCK / c["load"]
    steps = -(-product.k // _BLOCK)
    each = -(-steps // choice.splits) * max(math, loads) + c["tile"] + first * second / c["store"]
    peak = gpu.matrix_peak(product.dtype) or gpu.fp32_flops
    us = max(
        choice.waves * each / (c["clock_ghz"] * 1e3),
        product.bytes / (c["bandwidth"] * gpu.bandwidth) * _MEGA,
        product.flops / (c["peak"] * peak) * _MEGA,
    )
    if choice.splits > 1:
        parts = 4 * choice.splits * product.m * product.n
        us += c["reduce_us"] + c["reduce_bytes"] * parts / gpu.bandwidth * _MEGA
    return c["launch_us"] + us


def tiled_us(product: Product, kernels: int, gpu: Gpu, c: Mapping[str, float]) -> float:
    """Return microseconds: rounds of the tiles that do best, or memory, the result, and further kernels.

    A product of several kernels is split along K, so that its tiles fill the SMs.
    """
    work = min(_rounds_us(product, side, kernels, gpu, c) for side in _TILES)
    memory = product.bytes / (c["bandwidth"] * gpu.bandwidth) * _MEGA
    longer = max(work, memory) * _softly(work, memory, _GENTLE)
    result = size_of(product.dtype) * product.batch * product.m * product.n
    store = result / (c["written"] * gpu.bandwidth) * _MEGA
    return c["launch_us"] + longer + store + c["further_us"] * (kernels - 1)


def _rounds_us(product: Product, side: int, kernels: int, gpu: Gpu, c: Mapping[str, float]) -> float:
    """Return microseconds of all rounds of square tiles."""
    peak = gpu.matrix_peak(product.dtype) or gpu.fp32_flops
    rate = c[f"tile{side}"] * peak / gpu.sms / _MEGA  # FLOPs that an SM does in a microsecond
    tiles = product.batch * -(-product.m // side) * -(-product.n // side)
    parts = 1
    if kernels > 1:
        parts = max(1, min(gpu.sms // tiles, -(-product.k // _LEAST_PART)))
    inner = product.k / parts
    rounds: int = -(-tiles * parts // gpu.sms)
    busy, serial = rounds * 2 * side * side * inner / rate, c["serial_ns"] * inner / 1e3
    return float((busy**3 + serial**3) ** (1 / 3))


def other_us(
    product: Product, kernels: int, gpu: Gpu, c: Mapping[str, float], peak: float | None = None
) -> float:
    """Return microseconds: arithmetic or memory, whichever is slower, and the part that is serial along K."""
    peak = peak or gpu.matrix_peak(product.dtype) or gpu.fp32_flops
    padded = 2 * product.batch * _padded(product.m) * _padded(product.n) * product.k
    work = padded / (c["efficiency"] * peak) * _MEGA
    memory = product.bytes / (c["bandwidth"] * gpu.bandwidth) * _MEGA
    serial = c["serial_ns"] * product.k / 1e3
    us: float = ((max(work, memory) * _softly(work, memory)) ** 3 + serial**3) ** (1 / 3)
    return c["launch_us"] + us + c["further_us"] * (kernels - 1)


def _softly(first: float, second: float, sharpness: int = _SHARP) -> float:
    """Return by how much the norm of two numbers exceeds the larger one, as a factor."""
    small, large = sorted((first, second))
    return float((1 + (small / large) ** sharpness) ** (1 / sharpness))


def _padded(side: int) -> int:
    return -(-side // _EDGE) * _EDGE


def _range(us: float, c: Mapping[str, float]) -> TimeRange:
    return TimeRange(us * c["low"], us, us * c["high"])
