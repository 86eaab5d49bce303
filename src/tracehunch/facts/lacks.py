"""Why a scope does not show what its work is, and what would record it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tracehunch.facts.activities import is_doubtful, multiplies
from tracehunch.facts.calls import NO_SHAPES
from tracehunch.facts.model import KernelUse, ScopeFacts
from tracehunch.facts.peaks import gpu_of
from tracehunch.facts.roofline import bound_of
from tracehunch.facts.vocabulary import KEYS
from tracehunch.trace.model import Trace
from tracehunch.units import join, printable, share

WORK_KEYS: Final = frozenset({"bound", "flops", "hbm_bytes", "achieved_flops", "achieved_bandwidth"})


def why_no_work(key: str, scope: ScopeFacts, trace: Trace) -> tuple[str, str] | None:
    """Return why a scope lacks a fact about its work, and the profiler option that would record it, else "".

    None for other facts, and where nothing about the scope's kernels is the reason.
    """
    if key not in WORK_KEYS:
        return None
    if not len(trace.gpu.row):
        return "no GPU activity was recorded", KEYS["gpu_time"].needs
    if not scope.kernels:
        return "nothing of it ran on a GPU", ""
    if key == "bound" and gpu_of(trace) is None:
        names = join(sorted({printable(device.name) for device in trace.header.devices}))
        return f"the peaks of {names or 'a GPU whose name was not recorded'} are not known", ""
    unknown = _UNKNOWN.get(key, _bytes_unknown)
    lacking = [kernel for kernel in scope.kernels if unknown(kernel)]
    return _told(lacking, scope) if lacking else None


def _flops_unknown(kernel: KernelUse) -> bool:
    may_multiply = multiplies(kernel.identity) or is_doubtful(kernel.identity)
    return kernel.work.flops is None and bool(kernel.work.why) and may_multiply


def _bytes_unknown(kernel: KernelUse) -> bool:
    return kernel.work.hbm_bytes is None and bool(kernel.work.why)


def _bound_unknown(kernel: KernelUse) -> bool:
    return bound_of(kernel) is None


_UNKNOWN: Final[Mapping[str, Callable[[KernelUse], bool]]] = {
    "bound": _bound_unknown,
    "flops": _flops_unknown,
    "achieved_flops": _flops_unknown,
}


def _told(lacking: Sequence[KernelUse], scope: ScopeFacts) -> tuple[str, str]:
    """Name the reason behind most of the time, and how much all that is not known takes."""
    time: Counter[str] = Counter()
    for kernel in lacking:
        time[_reason(kernel)] += round(1e3 * kernel.total_us)
    ((reason, _),) = time.most_common(1)
    if reason == NO_SHAPES:
        return reason, KEYS["flops"].needs
    total = sum(kernel.total_us for kernel in scope.kernels)
    return f"{printable(reason)} ({share(time.total() / 1e3, total)} of the GPU time)", ""


def _reason(kernel: KernelUse) -> str:
    if kernel.work.why:
        return kernel.work.why
    if kernel.kind == "memcpy":
        return "copies from and to the host are bound by neither"
    return f"the peak of what {kernel.op} multiplies in is not known"
