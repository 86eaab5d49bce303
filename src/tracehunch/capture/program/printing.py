"""`print(tensor)`, `str(tensor)`: to write its elements PyTorch launches kernels and waits for some of them.

What it runs depends on the values (torch/_tensor_str.py): it is recorded where these are known.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.capture.program.dispatch import Dispatch

_INDENT: Final = len("tensor(")
_UNTOLD: Final = (
    "print() or str() of a tensor on the GPU waits for it, and runs kernels that its values tell: "
    "none is counted"
)


@contextmanager
def printing(torch: Any, dispatch: Dispatch) -> Iterator[None]:
    """Note what it takes to write tensors of the GPU as text, or that it is not known."""
    from torch._subclasses.fake_tensor import FakeTensor  # noqa: PLC0415  # an optional dependency

    written = FakeTensor.__repr__
    text = torch._tensor_str  # noqa: SLF001  # where torch writes tensors

    def contents(self: Any) -> None:
        with torch.no_grad():
            text._tensor_str(self, _INDENT)  # noqa: SLF001  # as above

    def represented(self: Any, **kwargs: Any) -> str:
        # `_str` leaves all modes: what it finds is not noted, and for a tensor without data it is nothing
        if dispatch.tape.on and self.device.type == "cuda" and self.numel() and _is_plain(torch, self):
            if dispatch.known.of(self) is None:
                dispatch.tape.obstacle(_UNTOLD, dispatch.remedy)
            else:
                contents(self)
        return written(self, **kwargs)  # type: ignore[no-any-return]  # torch is not typed here

    with patch.object(FakeTensor, "__repr__", represented):
        yield


def _is_plain(torch: Any, tensor: Any) -> bool:
    return bool(tensor.layout == torch.strided and not tensor.is_nested)
