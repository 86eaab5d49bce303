"""The work of each distinct kernel of a scope, its rates, and the peak of the GPU that bounds it."""

import numpy as np

from tracehunch.facts.activities import DIRECTIONS, MEMCPY, Use
from tracehunch.facts.activity_work import ActivityWork
from tracehunch.facts.model import KernelWork
from tracehunch.facts.work import Limit, limit
from tracehunch.hardware import Gpu
from tracehunch.trace.model import Int64

_PERCENT = 100.0


def kernel_work(
    work: ActivityWork, model: Gpu | None, use: Use, item: Int64, *, time_ns: int, per_call: tuple[int, int]
) -> KernelWork:
    """Return the work of a use's activities in a scope.

    ``time_ns`` is that of all of them, ``per_call`` their FLOPs and bytes a call of the scope.
    """
    if work.part[item].all():
        return KernelWork(bound=None if model is None else "memory")
    flops_known, bytes_known = work.flops_known[item].all(), work.bytes_known[item].all()
    total_flops, total_bytes = int(work.flops[item].sum()), int(work.bytes[item].sum())
    why = "" if flops_known and bytes_known else work.why(item)
    if not bytes_known and not total_flops:  # nothing but a name that says that nothing is multiplied
        return KernelWork(why=why)
    bound, percent = None, None
    if model is not None and flops_known and bytes_known and time_ns and _meets_memory(use):
        bound, percent = _bound(work, model, item, time_ns)
    return KernelWork(
        flops=per_call[0] if flops_known else None,
        hbm_bytes=per_call[1] if bytes_known else None,
        achieved_flops=_rate(total_flops, time_ns) if flops_known else None,
        achieved_bandwidth=_rate(total_bytes, time_ns) if bytes_known else None,
        bound=bound,
        percent_of_peak=percent,
        why=why,
    )


def _meets_memory(use: Use) -> bool:
    """Tell whether the GPU's own memory can limit an activity: a copy from or to elsewhere waits for that."""
    return use.kind != MEMCPY or use.direction == DIRECTIONS.index("dtod")


def _bound(work: ActivityWork, model: Gpu, item: Int64, time_ns: int) -> tuple[Limit | None, float | None]:
    """Return which peak limits activities, and percent of it that they reach."""
    flops, moved = work.flops[item], int(work.bytes[item].sum())
    computing = flops > 0
    seconds = float(np.sum(flops[computing] / work.peak[item][computing]))  # at the peak
    if np.isnan(seconds):
        return None, None
    which = limit(seconds, moved, 1.0, model.bandwidth) if seconds else "memory"
    least = seconds if which == "compute" else moved / model.bandwidth
    return which, round(_PERCENT * least * 1e9 / time_ns, 6)


def _rate(total: int, time_ns: int) -> int | None:
    return round(total * 1e9 / time_ns) if time_ns else None
