"""Where Python reads a tensor's values: `item`, `tolist`, `numpy`, `float`, `int`, f-strings."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tracehunch.capture.program.unknown import unknown_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.capture.program.dispatch import Dispatch


@contextmanager
def reading(torch: Any, dispatch: Dispatch) -> Iterator[None]:
    """Answer with the values that are known, and with numbers that stop the recording where they decide."""
    from torch._subclasses.fake_tensor import FakeTensor  # noqa: PLC0415  # an optional dependency

    base = torch._C.TensorBase  # noqa: SLF001  # the methods before torch's own fake ones
    with ExitStack() as stack:
        for name, method in _methods(torch, dispatch, base).items():
            stack.enter_context(patch.object(FakeTensor, name, method, create=True))
        yield


def _methods(torch: Any, dispatch: Dispatch, base: Any) -> dict[str, Any]:
    known, tape = dispatch.known, dispatch.tape

    def item(self: Any) -> Any:
        dispatch.lenient, dispatch.unknown = True, False
        try:
            found = base.item(self)
        finally:
            dispatch.lenient = False
        return _number(dispatch, self) if dispatch.unknown else found

    def listed(self: Any) -> Any:
        there = self if self.device.type == "cpu" else self.to("cpu")
        real = known.of(there)
        return (
            _nested(self.shape, lambda: _number(dispatch, self)) if real is None else known.aside(real.tolist)
        )

    def as_float(self: Any) -> float:
        found = item(self)
        if dispatch.unknown:
            tape.obstacle("float() of a tensor: its value is not known, 1.0 stands for it", dispatch.remedy)
        return float(found)

    def as_array(self: Any, **_: Any) -> Any:
        if self.device.type != "cpu":
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")
        real = known.of(self)
        if real is None:
            tape.obstacle(
                "numpy() of a tensor: its values are not known, zeros stand for them", dispatch.remedy
            )
        return known.aside(lambda: _zeros(torch, self).numpy() if real is None else real.numpy())

    def formatted(self: Any, spec: str) -> str:
        return format(item(self), spec) if self.dim() == 0 else object.__format__(self, spec)

    return {
        "item": item,
        "tolist": listed,
        "__float__": as_float,
        "__format__": formatted,
        "numpy": as_array,
    }


def _number(dispatch: Dispatch, tensor: Any) -> Any:
    return unknown_number(
        lambda reason: dispatch.tape.stop(reason, dispatch.remedy), floating=tensor.dtype.is_floating_point
    )


def _zeros(torch: Any, like: Any) -> Any:
    return torch.zeros(tuple(like.shape), dtype=like.dtype, device="cpu")


def _nested(shape: Any, make: Any) -> Any:
    if not shape:
        return make()
    return [_nested(shape[1:], make) for _ in range(shape[0])]
