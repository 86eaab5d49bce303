"""From torch's tensors and arguments to those of a recorded call."""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tracehunch.errors import GuessError
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.ops.tensor import Tensor
from tracehunch.predict.sdpa import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


@lru_cache(maxsize=64)
def dtype_of(written: str) -> str:
    """Return the short word of a torch data type, as "bf16"; torch's own name where there is none."""
    try:
        return dtype_word(written)
    except GuessError:
        return written.removeprefix("torch.")


def recorded(tensor: Any) -> Tensor:
    """Return what kernels depend on of a tensor; sparse and nested ones count as contiguous."""
    shape = tuple(int(size) for size in tensor.shape)
    try:
        strides, offset = tuple(int(step) for step in tensor.stride()), int(tensor.storage_offset())
    except (RuntimeError, NotImplementedError):
        strides, offset = _row_major(shape), 0
    return Tensor(shape, dtype_of(str(tensor.dtype)), strides, offset)


def spec(tensor: Any) -> TensorSpec:
    """Return a tensor as SDPA's rules see it."""
    return TensorSpec(
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()),
        dtype=str(tensor.dtype).removeprefix("torch."),
        storage_offset=tensor.storage_offset(),
        requires_grad=tensor.requires_grad,
    )


def flat(value: Any, is_tensor: Any) -> Iterator[Any]:
    """Yield the tensors in a value that may be one, or a list, tuple or dict of such values."""
    if is_tensor(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from flat(item, is_tensor)
    elif isinstance(value, dict):
        for item in value.values():
            yield from flat(item, is_tensor)


class Arguments:
    """The arguments of one call, sorted by its schema: `tensors` in order, `options` all others.

    Lists of tensors are laid out flat, their lengths in `options["list_lengths"]` by name; entries of a list
    that are None (an index that takes a whole dimension) stand in `options["list_absent"]` by position.
    """

    def __init__(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], is_tensor: Any) -> None:
        self.tensors: list[Any] = []
        self.mutated: list[Any] = []
        self._options: dict[str, Any] = {}
        self._is_tensor = is_tensor
        for at, argument in enumerate(func._schema.arguments):  # noqa: SLF001  # torch has no public schema
            if at < len(args) and not argument.kwarg_only:
                self._take(argument, args[at])
            elif argument.name in kwargs:
                self._take(argument, kwargs[argument.name])

    @property
    def options(self) -> Mapping[str, Any]:
        """Arguments that are no tensors and not at their defaults, in plain values."""
        return MappingProxyType(self._options)

    def note(self, name: str, *, value: Any) -> None:
        """Add what is known of the call besides its arguments."""
        self._options[name] = value

    def _take(self, argument: Any, value: Any) -> None:
        if self._is_tensor(value):
            self._add(argument, [value])
        elif isinstance(value, (list, tuple)) and any(self._is_tensor(one) for one in value):
            self._add(argument, [one for one in value if one is not None])
            self._options.setdefault("list_lengths", {})[argument.name] = sum(v is not None for v in value)
            absent = tuple(at for at, one in enumerate(value) if one is None)
            if absent:
                self._options.setdefault("list_absent", {})[argument.name] = absent
        elif argument.name != "generator" and not _is_default(argument, value):
            self._options[argument.name] = plain(value)

    def _add(self, argument: Any, values: list[Any]) -> None:
        self.tensors += values
        if argument.alias_info is not None and argument.alias_info.is_write:
            self.mutated += values


def _is_default(argument: Any, value: Any) -> bool:
    if not argument.has_default_value():
        return False
    default = argument.default_value
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return list(value) == list(default)
    return type(value) is type(default) and bool(value == default)


def plain(value: Any) -> Any:
    """Return an argument in plain values: data types as "bf16", devices as "cuda", formats as "preserve"."""
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(plain(one) for one in value)
    make = _PLAIN.get(type(value).__name__, str)
    return make(value)


_PLAIN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "dtype": lambda value: dtype_of(str(value)),
    "device": lambda value: "cuda" if value.type == "meta" else value.type,
    "memory_format": lambda value: str(value).removeprefix("torch.").removesuffix("_format"),
    "layout": lambda value: str(value).removeprefix("torch."),
    "SymInt": int,
}
"""By the name of torch's type."""


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for at in range(len(shape) - 2, -1, -1):
        strides[at] = strides[at + 1] * max(shape[at + 1], 1)
    return tuple(strides)
