"""TensorSpec: what dispatch rules see of a tensor, and the layouts in which attention's inputs come."""

from dataclasses import dataclass
from math import prod
from typing import Final

from tracehunch.errors import GuessError

ITEM_BYTES: Final = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "bfloat16": 2,
    "float16": 2,
    "float32": 4,
    "float64": 8,
}
"""Names of data types as torch writes them, and the bytes of one element."""

_SHORT: Final = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "half": "float16",
    "fp32": "float32",
    "float": "float32",
    "fp64": "float64",
    "double": "float64",
    "fp8": "float8_e4m3fn",
    "long": "int64",
    "int": "int32",
}

LAYOUTS: Final = ("bhsd", "bshd", "strided_last", "expand_b")
"""Ways to make a (B, H, S, D) tensor: contiguous; a (B, S, H, D) one transposed; a (B, H, D, S) one
transposed; a batch of 1 expanded."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor without its values: `stride` and `storage_offset` count elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    storage_offset: int = 0
    requires_grad: bool = False

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements, counting those that an expanded tensor repeats."""
        return prod(self.shape)

    @property
    def item_bytes(self) -> int:
        """Bytes of one element."""
        return ITEM_BYTES[self.dtype]


def dtype_name(written: str) -> str:
    """Return torch's name of a data type: "torch.bfloat16", "bf16" and "bfloat16" are the same.

    Raises:
        GuessError: no data type that a prediction knows.

    """
    name = written.strip().removeprefix("torch.").lower()
    name = _SHORT.get(name, name)
    if name not in ITEM_BYTES:
        raise GuessError(f"{written!r} is no data type known here", "", f"use one of {', '.join(ITEM_BYTES)}")
    return name


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return row-major strides in elements; a dimension of size 0 counts as 1, as in torch."""
    strides = [1] * len(shape)
    for at in range(len(shape) - 2, -1, -1):
        strides[at] = strides[at + 1] * max(shape[at + 1], 1)
    return tuple(strides)


def tensor(
    shape: tuple[int, ...],
    dtype: str,
    layout: str = "bhsd",
    *,
    storage_offset: int = 0,
    requires_grad: bool = False,
) -> TensorSpec:
    """Return a tensor of a shape in one of `LAYOUTS` ("contiguous" is "bhsd").

    `shape` is (B, H, S, D) for all layouts but the contiguous one, which takes any.

    Raises:
        GuessError: a layout or data type that is not known.

    """
    return TensorSpec(shape, _strides(shape, layout), dtype_name(dtype), storage_offset, requires_grad)


def _strides(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    if layout in ("bhsd", "contiguous"):
        return contiguous_strides(shape)
    if layout not in LAYOUTS or len(shape) != 4:  # (B, H, S, D)
        raise GuessError(
            f"layout {layout!r} of a tensor with {len(shape)} dimensions is not known",
            "",
            f"use one of {', '.join(LAYOUTS)} for (B, H, S, D)",
        )
    batch, heads, length, width = shape
    if layout == "bshd":
        of_batch, of_length, of_head, of_width = contiguous_strides((batch, length, heads, width))
        return of_batch, of_head, of_length, of_width
    if layout == "strided_last":
        of_batch, of_head, of_width, of_length = contiguous_strides((batch, heads, width, length))
        return of_batch, of_head, of_length, of_width
    strides = contiguous_strides((1, heads, length, width))
    return strides if batch == 1 else (0, *strides[1:])
