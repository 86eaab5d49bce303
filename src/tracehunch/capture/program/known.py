"""What values tensors have, as far as that is known: real tensors on the CPU behind those without data.

Masks, positions and counters are made from constants, and programs decide by them ("is all of the mask on?").
So what is computed from known values, small enough and without chance, is computed for real beside the
recording. With `everything` that holds for all tensors, of any size and also where chance has a part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.program.substitutes import substitutes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tracehunch.capture.program.tensors import Arguments

_LARGEST: Final = 1 << 21
"""Elements of a tensor up to which values are followed, without `everything`."""

_WHOLE: Final = tuple(f"aten::{name}" for name in ("randperm", "random_", "multinomial"))
"""Operations that samplers of data draw an order with; whole numbers that a program draws are its data."""

UNKNOWN: Final = object()
"""Stands for what a call returns where that is not known."""

_UNWRITTEN: Final = ("aten::empty", "aten::new_empty")
"""How operations begin that return memory as they find it."""

_OVERWRITING: Final = ("aten::fill_", "aten::zero_", "aten::copy_", "aten::random_")
"""Operations that need not know what was there before; those with `out=` are the others."""

_KEY: Final = "_known_values"

_FAILS: Final = (RuntimeError, NotImplementedError, IndexError, ValueError, TypeError)
"""What an operation raises that the CPU cannot do, or not with these values."""


class _Memory:
    """A stretch of memory that several tensors may show; `known` until something unknown is written to it.

    `blank` until anything is written to all of it, where it was allocated and no more.
    """

    __slots__ = ("blank", "known")

    def __init__(self) -> None:
        self.known = True
        self.blank = False


class Known:
    """Real tensors behind those without data."""

    def __init__(self, torch: Any, *, everything: bool) -> None:
        self.everything = everything
        self.lost = ""  # the first operation whose results are unknown
        self._torch = torch
        self._fake: Any = None
        self._instead = substitutes(torch)
        self._random = torch.Tag.nondeterministic_seeded

    def begin(self, fake_tensor: Any) -> None:
        """Say which class tensors without data have."""
        self._fake = fake_tensor

    def of(self, tensor: Any) -> Any | None:
        """Return a tensor's values, a real tensor on the CPU; None where they are unknown."""
        if not isinstance(tensor, self._fake):
            return tensor if self.fits(tensor) and tensor.device.type == "cpu" else None
        held = tensor.__dict__.get(_KEY)
        return held[0] if held is not None and held[1].known and not held[1].blank else None

    def _blank(self, tensor: Any) -> Any | None:
        """Return the memory behind a tensor that nothing was written to yet; None for any other."""
        held = tensor.__dict__.get(_KEY) if isinstance(tensor, self._fake) else None
        return held[0] if held is not None and held[1].known and held[1].blank else None

    def keep(self, tensor: Any, real: Any, sources: Iterable[Any] = ()) -> None:
        """Note a tensor's values; `sources` are tensors whose memory they may share."""
        if not isinstance(tensor, self._fake):
            return
        memory = self._memory_of(real, sources)
        if memory is None:  # its own: to be laid out as on the GPU
            real, memory = self._laid(tensor, real), _Memory()
        tensor.__dict__[_KEY] = (real, memory)

    def forget(self, tensor: Any) -> None:
        """Note that a tensor's memory holds something unknown from now on."""
        held = tensor.__dict__.get(_KEY) if isinstance(tensor, self._fake) else None
        if held is not None:
            held[1].known = False

    def follow(self, func: Any, args: Any, kwargs: Any, arguments: Arguments, made: Any) -> None:
        """Compute the values of what a call returned or wrote, where those of its arguments are known."""
        results = (
            [made] if self._torch.is_tensor(made) else list(made) if isinstance(made, (list, tuple)) else []
        )
        results = [one for one in results if self._torch.is_tensor(one)]
        concerned = [*results, *arguments.tensors]
        done = False
        if (results or arguments.mutated) and all(self.fits(one) for one in concerned):
            done = self._compute(func, args, kwargs, arguments, results)
        if not done:
            self.lost = self.lost or func.name()
            for written in arguments.mutated:
                self.forget(written)

    def run(self, func: Any, args: Any, kwargs: Any, arguments: Arguments) -> Any:
        """Run a call on the values of its arguments; UNKNOWN where one is, or the CPU cannot do it."""
        if self._random in func.tags and not self.everything and not self._order(func, kwargs, arguments):
            return UNKNOWN
        unknown = [one for one in arguments.tensors if self.of(one) is None]
        if unknown and not all(self._is_overwritten(one, func, arguments) for one in unknown):
            return UNKNOWN
        swap, compute = self._swap, self._instead.get(func, func)
        return self.aside(lambda: compute(*swap(args), **swap(kwargs)), UNKNOWN)

    def _is_overwritten(self, tensor: Any, func: Any, arguments: Arguments) -> bool:
        """Whether a call writes all of a tensor's memory, which was blank before."""
        real = self._blank(tensor)
        if real is None or not any(tensor is one for one in arguments.mutated):
            return False
        whole = real.numel() * real.element_size() >= real.untyped_storage().nbytes()
        name, _, overload = func.name().partition(".")
        return whole and (name in _OVERWRITING or "out" in overload)

    def _order(self, func: Any, kwargs: Any, arguments: Arguments) -> bool:
        """Whether whole numbers are drawn on the CPU, as an order of data is: one is as good as another."""
        if func._schema.name not in _WHOLE:  # noqa: SLF001  # torch has no public schema
            return False
        places = [one.device for one in arguments.tensors] or [kwargs.get("device")]
        return all(place is None or place.type == "cpu" for place in places)

    def aside(self, work: Callable[[], Any], otherwise: Any = None) -> Any:
        """Do work on real tensors, unseen by the recording; return `otherwise` where it fails."""
        torch = self._torch
        with torch._C._DisableTorchDispatch(), torch.inference_mode(mode=False), torch.no_grad():  # noqa: SLF001  # torch has no public way
            try:
                return work()
            except _FAILS:
                return otherwise

    def _compute(self, func: Any, args: Any, kwargs: Any, arguments: Arguments, results: list[Any]) -> bool:
        real = self.run(func, args, kwargs, arguments)
        if real is UNKNOWN:
            return False
        reals = [real] if self._torch.is_tensor(real) else real or []
        reals = [one for one in reals if self._torch.is_tensor(one)]
        if len(reals) != len(results):
            return False
        for one in arguments.mutated:
            if self._blank(one) is not None:
                one.__dict__[_KEY][1].blank = False
        whole = True
        for one, value in zip(results, reals, strict=True):
            if any(one is written for written in arguments.mutated):
                continue
            if one.shape == value.shape and one.dtype == value.dtype:
                self.keep(one, value, arguments.tensors)
                if func.name().startswith(_UNWRITTEN) and not self.everything:
                    one.__dict__[_KEY][1].blank = True
            else:
                whole = False
        return whole

    def _memory_of(self, real: Any, sources: Iterable[Any]) -> _Memory | None:
        place = _place(real)
        for source in sources:
            held = source.__dict__.get(_KEY) if isinstance(source, self._fake) else None
            if held is not None and _place(held[0]) == place:
                memory: _Memory = held[1]
                return memory
        return None

    def _laid(self, tensor: Any, real: Any) -> Any:
        if real.stride() == tensor.stride():
            return real

        def lay() -> Any:
            return self._torch.empty_strided(tensor.shape, tensor.stride(), dtype=real.dtype).copy_(real)

        return real if real.shape != tensor.shape else self.aside(lay)

    def _swap(self, value: Any) -> Any:
        torch = self._torch
        if torch.is_tensor(value):
            real = self.of(value)
            return self._blank(value) if real is None else real
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if isinstance(value, torch.Generator):
            return None
        if isinstance(value, (list, tuple)):
            return type(value)([self._swap(one) for one in value])
        if isinstance(value, dict):
            return {name: self._swap(one) for name, one in value.items()}
        return value

    def fits(self, tensor: Any) -> bool:
        """Whether a tensor is small enough for its values to be followed."""
        return self.everything or tensor.numel() <= _LARGEST


def _place(real: Any) -> int:
    if str(real.layout) != "torch.strided":
        return id(real)  # sparse ones have no memory of their own
    return int(real.untyped_storage()._cdata)  # noqa: SLF001  # data_ptr is 0 for all that are empty
