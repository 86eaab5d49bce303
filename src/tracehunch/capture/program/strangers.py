"""Tensors on the CPU that a program without devices uses with those of the GPU: taken as if there too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.capture.program.tensors import flat

if TYPE_CHECKING:
    from tracehunch.capture.program.known import Known


class Strangers:
    """Made by numpy, read from a file or put on the CPU by name."""

    def __init__(self, torch: Any, fake: Any, known: Known) -> None:
        aten = torch.ops.aten
        self._torch = torch
        self._fake = fake
        self._known = known
        self._places: dict[int, tuple[Any, Any]] = {}
        copies = (aten._to_copy.default, aten.copy_.default)  # noqa: SLF001  # an operator's name
        on_cpu = (aten._pack_padded_sequence.default,)  # noqa: SLF001  # as above: it takes lengths from there
        self._arrivals = {aten.lift_fresh.default, aten.lift.default, *copies, *on_cpu}

    def taken_in(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the arguments of a call with all its tensors on the GPU, if one is or none is ours.

        Copies are left as they are: they may cross. So are numbers, which may stay on the CPU.
        """
        if func in self._arrivals:
            return args, kwargs
        given = list(flat((args, kwargs), self._torch.is_tensor))
        meets = any(one.device.type == "cuda" for one in given)
        on_cpu = [one for one in given if one.device.type == "cpu" and one.dim() > 0]
        strangers = [one for one in on_cpu if meets or not isinstance(one, self._fake)]
        if not strangers:
            return args, kwargs
        swap = {id(one): self._there(one) for one in strangers}
        return _swapped(args, swap), _swapped(kwargs, swap)

    def _there(self, tensor: Any) -> Any:
        if id(tensor) not in self._places:
            place = {"dtype": tensor.dtype, "device": self._torch.device("cuda", 0)}
            made = self._torch.empty_strided(tensor.shape, tensor.stride(), **place)
            real = self._known.of(tensor)
            if real is not None:
                self._known.keep(made, real)
            self._places[id(tensor)] = (tensor, made)  # the first keeps the identity from being used again
        return self._places[id(tensor)][1]


def _swapped(value: Any, swap: dict[int, Any]) -> Any:
    if id(value) in swap:
        return swap[id(value)]
    if isinstance(value, (list, tuple)):
        return type(value)([_swapped(one, swap) for one in value])
    if isinstance(value, dict):
        return {name: _swapped(one, swap) for name, one in value.items()}
    return value
