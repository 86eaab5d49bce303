"""Indexing by a list, `x[:, [0, -1]]`: Python's numbers become a tensor, which is copied to the GPU.

C++ makes that tensor unseen by the recording, and without values on the device that it hears of.
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
        base.__setitem__(self, _placed(torch, self, index), value)

    with ExitStack() as stack:
        stack.enter_context(patch.object(FakeTensor, "__getitem__", get, create=True))
        stack.enter_context(patch.object(FakeTensor, "__setitem__", put, create=True))
        yield


def _placed(torch: Any, tensor: Any, index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(_placed(torch, tensor, one) for one in index)
    if isinstance(index, list) and index and all(isinstance(one, int) for one in index):
        return torch.tensor(index, device=tensor.device)
    return index
