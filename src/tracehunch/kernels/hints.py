"""What a trace knows about a kernel beside its name, as hints for `classify`.

A user's Triton kernel has the name of a Python function, which says nothing. Two things in a trace do say
where it came from: the op that launched it, when its args hold `kernel_backend: triton` (torch.compile writes
that, for user kernels inside compiled code too); and the way of the launch. Triton launches through the
driver (`cuLaunchKernelEx`), whose other users in a PyTorch process are libraries called from inside an aten
op; its blocks are one-dimensional, a power of two of warps; its names are plain identifiers.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_BARE_IDENTIFIER = re.compile(r"^[A-Za-z_]\w{0,500}$")
_DRIVER_LAUNCHES: Final = frozenset({"cuLaunchKernelEx", "hipModuleLaunchKernel"})
# Namespaces of ops that call vendor libraries, which launch through the driver too.
_LIBRARY_OPS: Final = ("aten::", "nccl:", "c10d::")
_FEWEST_THREADS: Final = 32  # of a block: one warp of an NVIDIA GPU
_MOST_THREADS: Final = 1_024
_AMD_WARP: Final = 64


def launch_hints(
    name: str,
    *,
    op_backend: str | None = None,
    launch_api: str | None = None,
    op_name: str | None = None,
    block: Sequence[int] | None = None,
) -> tuple[str, ...]:
    """Return ("triton",) where the launch shows that a kernel came from Triton, else ().

    `op_backend` is `args["kernel_backend"]` of the innermost op that encloses the launch, `op_name` that op's
    name (`None` where no op encloses it), `launch_api` the name of the launch event, `block` the kernel's
    `block`.
    """
    if op_backend == "triton":
        return ("triton",)
    if launch_api not in _DRIVER_LAUNCHES or _BARE_IDENTIFIER.match(name) is None:
        return ()
    if op_name is not None and op_name.startswith(_LIBRARY_OPS):
        return ()
    if block is None or not _is_triton_block(block):
        return ()
    return ("triton",)


def _is_triton_block(block: Sequence[int]) -> bool:
    """Tell whether a block is one-dimensional and a power of two of warps, whatever the warp's size."""
    if not block or any(size != 1 for size in block[1:]):
        return False
    return _FEWEST_THREADS <= block[0] <= _MOST_THREADS and block[0].bit_count() == 1


def vendor_hint(device_properties: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return ("nvidia",) or ("amd",) from an entry of a header's `deviceProperties`, else ()."""
    if not device_properties:
        return ()
    name = str(device_properties.get("name", ""))
    if name.startswith(("NVIDIA ", "Tesla ", "GeForce ", "Quadro ", "A100")):
        return ("nvidia",)
    if name.startswith("AMD ") or device_properties.get("warpSize") == _AMD_WARP:
        return ("amd",)
    return ()
