"""Numbers in subscripts, `x[:, [0, -1]]`, and those that are written, `x[mask] = 0`: they become tensors.

C++ makes these unseen by the recording, without values, and on the device that it hears of. A list's is
copied to the GPU; a number that is written stays on the host (`THPVariable_setitem` in
torch/csrc/autograd/python_variable_indexing.cpp), so that a kernel fills, or one element is copied.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def subscripts(torch: Any) -> Iterator[None]:
    """Make tensors of lists in subscripts where they are seen."""
    from torch._subclasses.fake_tensor import FakeTensor  # noqa: PLC0415  # an optional dependency

    base = torch._C.TensorBase  # noqa: SLF001  # where the methods are

    def get(self: Any, index: Any) -> Any:
        return base.__getitem__(self, _placed(torch, self, index))

    def put(self: Any, index: Any, value: Any) -> None:
        base.__setitem__(self, _placed(torch, self, index), _on_host(torch, self, value))

    with ExitStack() as stack:
        stack.enter_context(patch.object(FakeTensor, "__getitem__", get, create=True))
        stack.enter_context(patch.object(FakeTensor, "__setitem__", put, create=True))
        yield


def _on_host(torch: Any, tensor: Any, value: Any) -> Any:
    """Return a number that is written to the GPU as the tensor on the host that C++ makes of it."""
    if not isinstance(value, (bool, int, float, complex)) or tensor.device.type != "cuda":
        return value
    with torch._C._DisableTorchDispatch():  # noqa: SLF001  # unseen, as C++ makes it
        return torch.scalar_tensor(value, dtype=tensor.dtype, device="cpu")


def _placed(torch: Any, tensor: Any, index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(_placed(torch, tensor, one) for one in index)
    if isinstance(index, list) and index and all(isinstance(one, int) for one in index):
        return torch.tensor(index, device=tensor.device)
    return index
