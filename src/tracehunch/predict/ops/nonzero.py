"""Where a mask is set: how many there are must be known on the host before the indices can be written."""

from typing import Final

from tracehunch.predict.ops.steps import Steps, joined, kernel, memcpy, under
from tracehunch.predict.ops.tensor import Tensor

_TILE: Final = 4096  # elements that one block of CUB's reduction takes
_INT64: Final = 8


def nonzero_steps(mask: Tensor) -> Steps:
    """Count, tell the host, and write the indices."""
    if mask.numel == 0:
        return ()
    count = kernel("DeviceReduceSingleTileKernel", "reduction", "tiny", 0, library="cub")
    if mask.numel > _TILE:
        count = joined(
            [
                kernel(
                    "DeviceReduceKernel", "reduction", "select", mask.nbytes, items=mask.numel, library="cub"
                ),
                count,
            ]
        )
    found = mask.numel // 2 * _INT64
    rest = [
        memcpy("dtoh", _INT64),
        kernel("DeviceCompactInitKernel", "scan", "tiny", 0, library="cub"),
        kernel(
            "DeviceSelectSweepKernel",
            "select",
            "select",
            mask.nbytes + found,
            items=mask.numel,
            library="cub",
        ),
    ]
    if len(mask.shape) > 1:
        rest.append(kernel("write_indices", "index", "select", found * len(mask.shape), items=mask.numel))
    return under("aten::nonzero", joined([count, *rest]))
