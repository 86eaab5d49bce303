"""`torch.tensor`, `as_tensor`, `asarray` and `new_tensor`: C++ would ask for the GPU that data is to go to.

It asks where the GPU has no number, and where arrays or tensors are moved there. So the number is given, and
these are made on the host and moved, which is one copy, as on a GPU. Source: `internal_new_from_data` in
torch/csrc/utils/tensor_new.cpp.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ALWAYS_NEW: Final = "tensor"
"""The function that copies its data even where it is a tensor already."""


@contextmanager
def of_data(torch: Any, default: Any = None) -> Iterator[None]:
    """Make tensors of data on a GPU that is not there; `default` is where those go that name no device.

    None leaves it to the modes that are on. A compiler traces no mode in here: it is to be given there.
    """
    from torch.utils import _device  # noqa: PLC0415  # an optional dependency

    _device._device_constructors()  # noqa: SLF001  # remembers the functions of when it is first called
    made = {name: _making(torch, name, default) for name in (_ALWAYS_NEW, "as_tensor", "asarray")}
    with ExitStack() as stack:
        for name, one in made.items():
            stack.enter_context(patch.object(torch, name, one))
        stack.enter_context(patch.object(torch.Tensor, "new_tensor", _renewing(torch, made[_ALWAYS_NEW])))
        yield


def _making(torch: Any, name: str, default: Any) -> Callable[..., Any]:
    ordinary, here, host = getattr(torch, name), torch.device("cuda", 0), torch.device("cpu")
    copy = name == _ALWAYS_NEW
    kinds = _held_elsewhere(torch)

    def make(data: Any, *, dtype: Any = None, device: Any = None, **options: Any) -> Any:
        place = default or default_device(torch) if device is None else torch.device(device)
        if place is None:
            return ordinary(data, dtype=dtype, **options)
        if place.type != "cuda":
            return ordinary(data, dtype=dtype, device=place, **options)
        if not isinstance(data, kinds):
            return ordinary(data, dtype=dtype, device=here, **options)
        if not isinstance(data, torch.Tensor):
            made = ordinary(data, dtype=dtype, device=host).to(here)
            return made.requires_grad_() if options.get("requires_grad") else made
        source = data.detach() if copy else data
        return source.to(device=here, dtype=data.dtype if dtype is None else dtype, copy=copy)

    return make


def default_device(torch: Any) -> Any:
    """Return the device for which none is named; None where a compiler traces, which knows it."""
    if torch.compiler.is_compiling():
        return None
    modes = torch.overrides._get_current_function_mode_stack()  # noqa: SLF001  # as torch.get_default_device
    found = [mode.device for mode in modes if isinstance(mode, torch.utils._device.DeviceContext)]  # noqa: SLF001  # as above
    return found[-1] if found else None


def _renewing(torch: Any, make: Callable[..., Any]) -> Callable[..., Any]:
    ordinary = torch.Tensor.new_tensor

    def new_tensor(self: Any, data: Any, *, dtype: Any = None, device: Any = None, **options: Any) -> Any:
        place = self.device if device is None else torch.device(device)
        if place.type != "cuda":
            return ordinary(self, data, dtype=dtype, device=device, **options)
        return make(data, dtype=self.dtype if dtype is None else dtype, device=place, **options)

    return new_tensor


def _held_elsewhere(torch: Any) -> tuple[type, ...]:
    """Return the types of data that C++ moves as a whole: tensors, and arrays where numpy is there."""
    numpy = sys.modules.get("numpy")
    return (torch.Tensor,) if numpy is None else (torch.Tensor, numpy.ndarray)
