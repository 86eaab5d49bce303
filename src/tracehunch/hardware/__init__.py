"""What is known about GPUs: data-sheet numbers, limits of an SM, occupancy."""

from tracehunch.hardware.gpu import Gpu, all_gpus, find_gpu
from tracehunch.hardware.limits import SmLimits, limits_of, sm_limits
from tracehunch.hardware.occupancy import MEASURABLE_SHARED_MEMORY, Occupancy, occupancy

__all__ = [
    "MEASURABLE_SHARED_MEMORY",
    "Gpu",
    "Occupancy",
    "SmLimits",
    "all_gpus",
    "find_gpu",
    "limits_of",
    "occupancy",
    "sm_limits",
]
