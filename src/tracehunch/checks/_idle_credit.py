"""How much of a sequence of gaps is due to time that the host lost before."""

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Int64


def accounted(lost_ns: Int64, length_ns: Int64, sequence: Int64) -> Int64:
    """Return how much of each gap would not be, had the host not lost time.

    ``lost_ns`` is what it had lost, in all, before it launched what ended each gap. Without that, the work
    after a gap starts earlier by S = min(lost, S of the gap before + length): never by more than the gaps so
    far, for the GPU is busy in between, nor by more than was lost. The growth of S is the gap's share.
    ``sequence`` numbers runs of gaps that follow each other; each begins with nothing lost.
    """
    if not lost_ns.size:
        return lost_ns
    total = np.cumsum(length_ns)
    begins = np.r_[True, np.diff(sequence) != 0]
    at = np.flatnonzero(begins)[np.cumsum(begins) - 1]  # where the sequence of each gap begins
    so_far = total - (total - length_ns)[at]
    lost = running_maximum(np.cumsum(begins) - 1, np.maximum(lost_ns, 0))
    spare = -running_maximum(np.cumsum(begins) - 1, so_far - lost)
    earlier = so_far + np.minimum(spare, 0)
    found: Int64 = earlier - np.where(begins, 0, np.r_[0, earlier[:-1]])
    return found


def running_maximum(group: NDArray[np.int64], values: Int64) -> Int64:
    """Maximum of the values so far within each group; groups are numbered from 0 and ascend."""
    low = values.min()
    span = int(values.max() - low) + 1
    if (int(group[-1]) + 1) * span < 2**62:
        offset = group * span - low
        shifted: Int64 = np.maximum.accumulate(values + offset) - offset
        return shifted
    ordered, rank = np.unique(values, return_inverse=True)
    highest = np.maximum.accumulate(group * ordered.size + rank.reshape(-1))
    found: Int64 = ordered[highest - group * ordered.size]
    return found
