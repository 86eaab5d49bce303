"""A call of an op as a trace recorded it: its tensors, and the values of its other arguments."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tracehunch.facts.work.dtypes import ELEMENT_BYTES, WORDS

_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_LIST: Final = "TensorList"


class NotRecorded(Exception):  # noqa: N818  # no error: the trace holds less than a formula needs
    """What a formula needs of a call was not recorded; the text says what."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor: shape, strides in elements (None where they were not recorded), ``dtype`` as a short word."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        """Number of elements, expanded ones counted each time."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, expanded ones counted each time."""
        return self.numel * self.itemsize

    @property
    def stored_bytes(self) -> int:
        """Bytes of the elements in memory: what is expanded, or overlaps otherwise, is there once."""
        if self.strides is None or not self.numel:
            return self.nbytes
        pairs = tuple(zip(self.shape, self.strides, strict=True))
        distinct = math.prod(size for size, stride in pairs if stride)
        span = 1 + sum((size - 1) * abs(stride) for size, stride in pairs)
        return min(distinct, span) * self.itemsize


Input = Operand | tuple[Operand, ...] | None
"""A tensor, a list of them, or an argument that is none."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: ``name`` as "aten::mm"; ``inputs`` and ``values`` by position, "" for a value not stated."""

    name: str
    inputs: tuple[Input, ...]
    values: tuple[str, ...] = ()
    element_bytes: int | None = None
    """Bytes of an element of what is copied, where only the kernel's name tells."""

    def optional(self, at: int) -> Operand | None:
        """Return the tensor at a position; None where it is no tensor, or was left out."""
        found = self.inputs[at] if at < len(self.inputs) else None
        return found if isinstance(found, Operand) else None

    def tensor(self, at: int) -> Operand:
        """Return the tensor at a position.

        Raises:
            NotRecorded: there is none.

        """
        found = self.optional(at)
        if found is None:
            raise NotRecorded(f"input {at + 1} of {self.name} is no tensor of a known type")
        return found

    def tensors(self, at: int) -> tuple[Operand, ...]:
        """Return the list of tensors at a position.

        Raises:
            NotRecorded: the profiler leaves lists of more than 30 out.

        """
        found = self.inputs[at] if at < len(self.inputs) else None
        if not isinstance(found, tuple) or not found:
            raise NotRecorded(f"the profiler did not record the list of tensors that {self.name} takes")
        return found

    def value(self, at: int) -> str:
        """Return an argument as it was stated; "" where it was not."""
        return self.values[at] if at < len(self.values) else ""

    def flag(self, at: int) -> bool:
        """Return a truth value.

        Raises:
            NotRecorded: it was not stated.

        """
        found = {"True": True, "False": False}.get(self.value(at))
        if found is None:
            raise NotRecorded(f"the arguments of {self.name} were not recorded")
        return found

    def flags(self, at: int) -> tuple[bool, ...]:
        """Return a list of truth values.

        Raises:
            NotRecorded: it was not stated.

        """
        found = re.findall(r"True|False", self.value(at))
        if not found:
            raise NotRecorded(f"the arguments of {self.name} were not recorded")
        return tuple(word == "True" for word in found)

    def integers(self, at: int) -> tuple[int, ...]:
        """Return a list of whole numbers, or a single one; none for an empty list or an argument left out.

        Raises:
            NotRecorded: no arguments were recorded, as before PyTorch 2.1.

        """
        if not self.values:
            raise NotRecorded(f"the arguments of {self.name} were not recorded")
        return tuple(int(number) for number in _INTEGER.findall(self.value(at)))

    def integer(self, at: int) -> int:
        """Return a whole number.

        Raises:
            NotRecorded: it was not stated.

        """
        if _INTEGER.fullmatch(self.value(at)) is None:
            raise NotRecorded(f"the arguments of {self.name} were not recorded")
        return int(self.value(at))

    def out(self, after: int) -> Operand | None:
        """Return the tensor that an ``out=`` variant writes to: one with dimensions behind the inputs."""
        last = self.optional(len(self.inputs) - 1)
        return last if len(self.inputs) > after and last is not None and last.shape else None


def call_of(name: str, dims: Any, types: Any, strides: Any, values: Any) -> Call:
    """Return a call from ``Input Dims``, ``Input type``, ``Input Strides`` and ``Concrete Inputs``.

    Anything else than lists of equal length, as other profilers and versions may write, is left out.
    """
    if not isinstance(dims, list) or not isinstance(types, list) or len(dims) != len(types):
        return Call(name, ())
    steps = strides if isinstance(strides, list) and len(strides) == len(dims) else [None] * len(dims)
    stated = values if isinstance(values, list) else ()
    inputs = tuple(_input(*one) for one in zip(dims, types, steps, strict=True))
    return Call(name, inputs, tuple(one if isinstance(one, str) else "" for one in stated))


def _input(dims: Any, kind: Any, strides: Any) -> Input:
    word = WORDS.get(kind) if isinstance(kind, str) else None
    if word is not None:
        return _operand(dims, word, strides)
    if kind != _LIST or not isinstance(dims, list):
        return None
    steps = strides if isinstance(strides, list) and len(strides) == len(dims) else [None] * len(dims)
    # a list's entries have no type in the file: whoever uses them knows their size from elsewhere
    found = [_operand(one, "uint8", step) for one, step in zip(dims, steps, strict=True)]
    return tuple(one for one in found if one is not None) if None not in found else None


def _operand(dims: Any, word: str, strides: Any) -> Operand | None:
    shape = _sizes(dims)
    if shape is None or any(size < 0 for size in shape):
        return None
    steps = _sizes(strides)
    return Operand(shape, word, steps if steps is not None and len(steps) == len(shape) else None)


def _sizes(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    if not all(isinstance(size, int) and not isinstance(size, bool) for size in value):
        return None
    return tuple(value)
