"""One number of the host written by index to a tensor of the GPU: by a mask it fills, else it is copied.

Source: `_index_put_impl_` and `canDispatchToMaskedFill` in ATen/native/TensorAdvancedIndexing.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Written:
    """Does what C++ does inside `index_put_` as calls of their own, with `call(func, args, kwargs)`."""

    def __init__(self, torch: Any, call: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        self._aten = torch.ops.aten
        self._call = call
        self._masks = (torch.bool, torch.uint8)

    def instead(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
        """Return what a call returns that writes one number of the host to the GPU; None for any other."""
        aten = self._aten
        if func not in (aten.index_put_.default, aten.index_put.default):
            return None
        target, indices, value, *rest = args
        if value.numel() != 1 or value.device.type != "cpu" or target.device.type != "cuda":
            return None
        mask = None if any(rest) or kwargs.get("accumulate") else self._mask(target, indices)
        if mask is None:
            there = self._call(aten._to_copy.default, (value,), {"device": target.device})  # noqa: SLF001  # a name
            return (self._call(func, (target, indices, there, *rest), kwargs),)
        if func is aten.index_put.default:
            target = self._call(aten.clone.default, (target,), {})
        return (self._call(aten.masked_fill_.Tensor, (target, mask, value), {}),)

    def _mask(self, target: Any, indices: Any) -> Any | None:
        """Return the only index that is given, a mask, as wide as the tensor; None where it is none."""
        given = [(place, one) for place, one in enumerate(indices) if one is not None]
        if len(given) != 1 or given[0][1].dtype not in self._masks:
            return None
        place, mask = given[0]
        if mask.device.type != "cuda":
            return None
        for _ in range(target.dim() - place - mask.dim()):
            mask = self._call(self._aten.unsqueeze.default, (mask, -1), {})
        return mask
