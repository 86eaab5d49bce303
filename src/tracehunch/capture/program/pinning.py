"""Pinned host memory: `pin_memory()`, `pin_memory=True` and what is a view of it, on a host without a GPU."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Pinned:
    """The memory that counts as pinned. Storages are kept, so that their identity is not used again."""

    def __init__(self, torch: Any) -> None:
        self._storages: dict[int, Any] = {}
        self._strided = torch.strided
        self._copies = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)  # noqa: SLF001  # a name

    def mark(self, tensors: Iterable[Any]) -> None:
        """Take the memory of tensors on the CPU as pinned."""
        for one in tensors:
            if one.device.type == "cpu":
                storage = one.untyped_storage()
                self._storages[storage._cdata] = storage  # noqa: SLF001  # data_ptr is 0 without data

    def holds(self, tensor: Any) -> bool:
        """Whether a tensor lies in pinned memory."""
        found = self._storages and tensor.layout is self._strided
        return bool(found and tensor.untyped_storage()._cdata in self._storages)  # noqa: SLF001  # as above

    def at_an_end(self, func: Any, tensors: Iterable[Any], outputs: Iterable[Any], options: Any) -> bool:
        """Whether a copy between host and GPU has pinned memory on the host's side.

        `Tensor.to("cpu", non_blocking=True)` makes such memory itself.
        """
        if func not in self._copies:
            return False
        sides = [one.device.type for one in (*tensors, *outputs)]
        free = func is self._copies[0] and options.get("non_blocking")
        if free and (sides[0], sides[-1]) == ("cuda", "cpu"):
            return True
        return any(one.device.type == "cpu" and self.holds(one) for one in tensors)


@contextmanager
def pinning(torch: Any, pinned: Pinned) -> Iterator[None]:
    """Pin host memory in name only."""

    def pin_memory(self: Any, device: Any = None) -> Any:  # noqa: ARG001  # as torch has it
        if self.device.type != "cpu" or pinned.holds(self):
            return self
        made = self.clone()
        pinned.mark([made])
        return made

    def is_pinned(self: Any, device: Any = None) -> bool:  # noqa: ARG001  # as torch has it
        return self.device.type == "cpu" and pinned.holds(self)

    with ExitStack() as stack:
        stack.enter_context(patch.object(torch.Tensor, "pin_memory", pin_memory))
        stack.enter_context(patch.object(torch.Tensor, "is_pinned", is_pinned))
        yield
