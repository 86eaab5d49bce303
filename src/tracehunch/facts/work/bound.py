"""The roofline's question: which of a machine's two peaks some work meets first."""

from typing import Literal

Limit = Literal["compute", "memory"]


def limit(flops: float, moved_bytes: float, peak_flops: float, peak_bandwidth: float) -> Limit:
    """Return what takes longer at the peaks (FLOP/s, bytes/s): to compute, or to move.

    In other words, whether FLOPs per byte reach the ridge, ``peak_flops / peak_bandwidth``.
    """
    return "compute" if flops * peak_bandwidth >= moved_bytes * peak_flops else "memory"
