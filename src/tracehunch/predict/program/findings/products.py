"""fp32-matmul: products of float32 that run without tensor cores, because TF32 is off."""

from collections.abc import Iterator, Sequence
from typing import Final

from tracehunch.hardware import Gpu
from tracehunch.predict.program.findings._run import (
    Run,
    at_line,
    grouped,
    kind_of_module,
    line_of,
    modules_of,
    scope_of,
    us_of,
)
from tracehunch.predict.program.model import CallGuess, Foreseen
from tracehunch.units import flop_rate, join, plural, time_range_us, time_us

ID: Final = "fp32-matmul"
_OF_PEAK: Final = (0.8, 0.45)
_OF_BANDWIDTH: Final = (0.9, 0.55)
_FIXED_US: Final = (2.0, 6.0)
"""What products reach of TF32's peak and of the bandwidth, and take at least; as for findings of a trace."""
_PRECISION: Final = "float32_matmul_precision"


def fp32_products(run: Run) -> Iterator[Foreseen]:
    """Report them by the kind of module that makes them."""
    gpu = run.env.gpu
    if (
        gpu is None
        or gpu.matrix_peak("tf32") is None
        or run.program.settings.get(_PRECISION, "highest") != "highest"
    ):
        return
    found = [one for one in run.calls if _is_single(one)]
    if not found:
        return
    for same in _by_weight(run, found):
        yield from _finding(run, gpu, same)


def _is_single(one: CallGuess) -> bool:
    kernels = one.activities.kernels or ()
    return one.sdpa is None and any(
        kernel.algorithm == "gemm" and kernel.dtype == "fp32" and kernel.unit == "cuda-core"
        for kernel in kernels
    )


def _by_weight(run: Run, found: list[CallGuess]) -> list[list[CallGuess]]:
    """Return the products by kind of module; those that are no warning alone, together."""
    groups = list(grouped(found, lambda one: kind_of_module(one.call.module)).values())
    large = [same for same in groups if run.is_material(us_of(same))]
    small = [one for same in groups if not run.is_material(us_of(same)) for one in same]
    return [*large, *([small] if small else [])] if len(large) <= 3 else [found]  # many kinds are one matter


def _finding(run: Run, gpu: Gpu, same: Sequence[CallGuess]) -> Iterator[Foreseen]:
    spent = us_of(same)
    low, high = (sum(_tf32_us(one, gpu, at) for one in same) for at in (0, 1))
    saved = spent - min(high, spent)
    if saved <= 0:
        return
    ops = join(list(dict.fromkeys(one.call.op for one in same)))
    peak, tf32 = gpu.fp32_flops, gpu.matrix_peak("tf32")
    assert tf32 is not None
    yield Foreseen(
        id=ID,
        scope=scope_of(same),
        severity=run.severity_of_slow(spent, saved),
        confidence="high",
        time_at_stake_us=saved,
        summary=f"float32 products run on CUDA cores: {plural(len(same), 'product')} of {ops}, "
        f"{time_us(spent)}, where TF32 is expected to take {time_range_us(low, high)}{at_line(same)}",
        cause=f"TF32 is off, PyTorch's default: {gpu.name} multiplies float32 at {flop_rate(peak)} at "
        "most, as "
        f"TF32 at {flop_rate(tf32)}. The expected time was estimated from the sizes and these peaks; at "
        "stake "
        "is what lies above its upper end.",
        fix='torch.set_float32_matmul_precision("high"), once before the work (11 bits of precision in the '
        "inputs, sums in float32; compare results); or bfloat16, with torch.autocast.",
        modules=modules_of(same),
        line=line_of(same),
        subject=ops,
        count=len(same),
        small=not run.is_noticeable(saved),
    )


def _tf32_us(one: CallGuess, gpu: Gpu, at: int) -> float:
    peak = gpu.matrix_peak("tf32") or gpu.fp32_flops
    work = one.activities.flops / (_OF_PEAK[at] * peak)
    moved = one.activities.bytes / (_OF_BANDWIDTH[at] * gpu.bandwidth)
    return max(work, moved) * 1e6 + _FIXED_US[at]
