"""How near kernels and scopes come to the peaks of their GPU, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.facts.peaks import gpu_of
from tracehunch.units import bandwidth, flop_rate, percent

if TYPE_CHECKING:
    from tracehunch.facts.model import KernelWork, ScopeFacts
    from tracehunch.trace.model import Trace

_ALL: Final = 100  # percent
_NOTHING: Final = 1
_PEAKS: Final = {"compute": "peak FLOP/s", "memory": "peak bandwidth"}
_RATES: Final = {"achieved_bandwidth": "peak bandwidth", "achieved_flops": "peak FLOP/s"}
_FORMATS: Final = ("bf16", "fp16")


def kernel_text(work: KernelWork) -> str:
    """``memory-bound, 71% of peak bandwidth``; the rate where no peak is known; "" for nothing known."""
    if work.bound is None:
        if work.achieved_flops:
            return flop_rate(work.achieved_flops)
        return "" if not work.achieved_bandwidth else bandwidth(work.achieved_bandwidth)
    if work.percent_of_peak is None:
        return f"{work.bound}-bound"
    share = f"{percent(work.percent_of_peak)} of {_PEAKS[work.bound]}"
    if work.percent_of_peak < _NOTHING:  # whatever holds it back, it is neither
        return f"far from both peaks, {share}"
    text = f"{work.bound}-bound, {share}"
    # memory cannot give more than its peak: what is read was in the cache
    return f"{text} (from cache)" if work.bound == "memory" and work.percent_of_peak > _ALL else text


def scope_text(scope: ScopeFacts) -> str:
    """``memory-bound: 54% of peak bandwidth, 3.3% of peak FLOP/s``; "" for nothing known."""
    bound = scope.value("bound")
    order = sorted(scope.percent_of_peak, key=lambda key: -scope.percent_of_peak[key])
    reached = [
        f"{percent(scope.percent_of_peak[key])} of {_RATES[key]}"
        for key in order
        if scope.percent_of_peak[key]
    ]
    return ": ".join(filter(None, (f"{bound}-bound" if bound else "", ", ".join(reached))))


def peaks_text(trace: Trace) -> str:
    """Say what percentages are of: ``peaks of H200 SXM: 4.80 TB/s, 989 TFLOP/s in bf16 ... (data sheet)``."""
    gpu = gpu_of(trace)
    if gpu is None:
        return ""
    rates = {word: gpu.matrix_peak(word) for word in _FORMATS} | {"fp32": gpu.fp32_flops}
    shown = [f"{flop_rate(rate)} {word}" for word, rate in rates.items() if rate]
    return f"peaks of {gpu.name}: {', '.join([bandwidth(gpu.bandwidth), shown[0], shown[-1]])} (data sheet)"
