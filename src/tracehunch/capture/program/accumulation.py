"""Sums of gradients: autograd adds in place to a gradient that nothing else refers to.

It never does so for tensors without data, as it does for plain ones (`can_accumulate_inplace` in
torch/csrc/autograd/input_buffer.cpp). So its sums are recognised here, and done in place where the same
conditions hold. How many references a tensor has that only autograd holds is counted on a small graph first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.program.tensors import recorded

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEY: Final = "_made_by"

_ADDS_NOTHING: Final = ("MulBackward0", "MmBackward0", "BmmBackward0", "DivBackward0", "MaximumBackward0")
"""Steps with no sum of their own: what one adds up of its own is the gradient of a tensor given twice."""


class Accumulation:
    """Tells autograd's own sums from those of the program."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._add = torch.ops.aten.add.Tensor
        self._alone: tuple[int, int] | None = (
            None  # references to a tensor, and to its memory, when only one is left
        )

    def calibrate(self) -> None:
        """Count the references to a gradient that only autograd holds; to be called in the world."""
        torch = self._torch
        with torch.enable_grad():
            leaf = torch.empty(2, device="cuda", requires_grad=True)
            middle = leaf * 2
            (middle.sin() + middle.cos()).sum().backward()

    def made(self, outputs: Iterable[Any]) -> None:
        """Note which step of the backward made tensors."""
        node = self._node()
        if node is not None:
            for one in outputs:
                one.__dict__.setdefault(_KEY, node)

    @property
    def step(self) -> str:
        """Name the step of the backward that is under way; empty where none is."""
        node = self._node()
        return node[0] if node is not None else ""

    def own(self, args: tuple[Any, ...]) -> bool:
        """Whether the step of the backward that is under way made the first argument."""
        return bool(args) and self._node() is not None and getattr(args[0], _KEY, None) == self._node()

    def in_place(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call is a sum of autograd's that a GPU run does in place."""
        if func is not self._add or kwargs or len(args) != 2 or not all(map(self._torch.is_tensor, args)):
            return False
        old, new = args
        node, maker = self._node(), getattr(old, _KEY, None)
        if node is None or maker is None or old.shape != new.shape or self._torch.is_grad_enabled():
            return False
        if maker == node and node[0] not in _ADDS_NOTHING:
            return False
        found = (old._use_count(), self._memory(old))  # noqa: SLF001  # nothing public tells
        if self._alone is None:
            self._alone = found
        return found[0] <= self._alone[0] and found[1] <= self._alone[1] and recorded(old).is_dense

    def _node(self) -> tuple[str, int] | None:
        node = self._torch._C._current_autograd_node()  # noqa: SLF001  # nothing public tells
        return None if node is None else (node.name(), node._sequence_nr())  # noqa: SLF001  # no public way

    def _memory(self, tensor: Any) -> int:
        place = tensor.untyped_storage()._cdata  # noqa: SLF001  # nothing public tells
        return int(self._torch._C._storage_Use_Count(place))  # noqa: SLF001  # torch has no public way
