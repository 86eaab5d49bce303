"""When a profiler may be started without changing what the program does with the GPU.

Starting one initialises the CUDA driver, also where only the CPU is recorded. From then on
CUDA_VISIBLE_DEVICES is fixed, and worker processes that are forked cannot use the GPU. So nothing is started
before the program has used the GPU itself, unless there is none.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_DEVICES: Final = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What the drivers of NVIDIA, AMD and of Windows' Linux put there."""


def is_harmless(torch: Any) -> bool:
    """Whether a profiler can be started now: the GPU is in use already, or there is none to be used."""
    return bool(torch.cuda.is_initialized()) or not _may_have_gpu(torch)


def when_first_used(torch: Any, tell: Callable[[], None]) -> None:
    """Call ``tell`` when the program first uses the GPU; never, if it does not."""
    torch.cuda._lazy_call(tell)  # noqa: SLF001  # torch has no public way; it seeds its generators by this


def is_capturing(torch: Any) -> bool:
    """Whether this thread's stream is being captured into a CUDA graph, when nothing may wait for it."""
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def _may_have_gpu(torch: Any) -> bool:
    if not (torch.version.cuda or torch.version.hip):
        return False
    if os.environ.get("CUDA_VISIBLE_DEVICES") in {"", "-1"}:
        return False
    return sys.platform != "linux" or any(Path(path).exists() for path in _DEVICES)
