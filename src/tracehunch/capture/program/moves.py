"""`Tensor.to`, `cuda` and `record_stream`: C++ would ask the GPU, so they are made of what it would call."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def moves(torch: Any) -> Iterator[None]:
    """Move tensors to a GPU that is not there."""
    with ExitStack() as stack:
        for name, method in _methods(torch).items():
            stack.enter_context(patch.object(torch.Tensor, name, method))
        yield


def _methods(torch: Any) -> dict[str, Any]:
    here = torch.device("cuda", 0)

    def move(x: Any, device: Any, dtype: Any, *, non_blocking: bool, copy: bool, layout: Any) -> Any:
        if device is not None and device.type in ("cuda", "meta"):
            device = here
        at = here if x.device.type == "meta" else x.device  # as within operations without data
        changed = {
            "device": None if device is None or at == device else device,
            "dtype": None if dtype is None or x.dtype == dtype else dtype,
            "memory_format": layout,
        }
        kept = layout in (None, torch.preserve_format) or x.is_contiguous(memory_format=layout)
        if changed["device"] is None and changed["dtype"] is None and kept and not copy:
            return x
        told = {name: value for name, value in changed.items() if value is not None}
        return torch.ops.aten._to_copy.default(x, non_blocking=non_blocking, **told)  # noqa: SLF001  # torch has no public way

    def to(self: Any, *args: Any, copy: bool = False, **kwargs: Any) -> Any:
        other: Any = args[0] if args else kwargs.get("other")
        if torch.is_tensor(other):
            kwargs.pop("other", None)
            args = (other.device, other.dtype, *args[1:])
        if len(args) > 2 and isinstance(args[-1], bool) and isinstance(args[-2], bool):
            *args, copy = args  # type: ignore[assignment]  # the last positional is `copy`
        device, dtype, non_blocking, layout = torch._C._nn._parse_to(*args, **kwargs)  # noqa: SLF001  # as Module.to
        return move(self, device, dtype, non_blocking=non_blocking, copy=copy, layout=layout)

    def cuda(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:  # noqa: ARG001  # the signature is torch's
        return move(self, here, None, non_blocking=non_blocking, copy=False, layout=memory_format)

    return {"to": to, "cuda": cuda, "record_stream": lambda *_: None}
