"""What an operation launches, step by step, before times are put to it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from tracehunch.errors import GuessError
from tracehunch.predict.ops.gemm import Product
from tracehunch.predict.ops.tensor import Tensor, broadcast, row_major

if TYPE_CHECKING:
    from tracehunch.predict.environment import Environment

Kind = Literal["kernel", "copy", "memset", "product", "grouped", "error", "unknown"]


@dataclass(frozen=True, slots=True)
class Step:
    """One launch, or why the rest cannot be told.

    "grouped" is one kernel that multiplies as a `product` does, with `items`
    nanoseconds to set up. `family` names the row of times.toml that tells how fast it moves its `bytes`
    and works on its `items`;
    `serial` counts the items that one thread or block works on one after the other, `loads` those that it
    waits for, from memory. `text` is a piece of the
    kernel's name, the direction of a copy, or the reason of an "error" or "unknown". `op` is the op inside
    the
    called one that launches it, as a trace attributes it ("aten::copy_"); "" for the called one itself.
    """

    kind: Kind
    text: str = ""
    algorithm: str = ""
    family: str = ""
    bytes: int = 0
    flops: int = 0
    dtype: str | None = None
    product: Product | None = None
    items: int = 0
    serial: int = 0
    library: str = "pytorch"
    op: str = ""
    loads: int = 0


Steps = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the op's plain name, its tensor arguments in order, and the others by name.

    `outputs` are the tensors that it returned, where they were recorded.
    """

    name: str
    tensors: tuple[Tensor, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    env: "Environment | None" = None
    outputs: tuple[Tensor, ...] = ()

    @property
    def first(self) -> Tensor:
        """The first tensor."""
        return self.at(0)

    def at(self, index: int) -> Tensor:
        """Return a tensor argument.

        Raises:
            GuessError: there are fewer.

        """
        if index >= len(self.tensors):
            raise GuessError(f"{self.name} needs at least {index + 1} tensors", f"{len(self.tensors)} given")
        return self.tensors[index]

    def option(self, name: str, default: Any = None) -> Any:
        """Return an argument that is no tensor."""
        return self.options.get(name, default)

    @property
    def sms(self) -> int:
        """SMs of the GPU, an H200's where it is not known."""
        gpu = None if self.env is None else self.env.gpu
        return 132 if gpu is None else gpu.sms


COPY: Final = "aten::copy_"
FILL: Final = "aten::fill_"
"""Ops that others call to copy and to fill."""

UNTIMED: Final = "untimed"
"""The family of kernels whose time was not looked at."""

HALF_FROM: Final = frozenset({"bf16", "fp16"})
"""Types to which float32 is copied in vectors."""

_OFFSETS: Final = (20, 20, 20, 25, 28)
"""What an element costs by the dimensions that its offsets are computed from, in twentieths."""

_HEAVY: Final = 4
"""Operations an element from which on arithmetic may be slower than memory."""


def kernel(
    text: str, algorithm: str, family: str, moved: int, *, flops: int = 0, dtype: str | None = None,
    items: int = 0, serial: int = 0, loads: int = 0, library: str = "pytorch",
) -> Steps:  # fmt: skip
    """Return one kernel."""
    about = (text, algorithm, family, moved, flops, dtype, None, items, serial, library)
    return (Step("kernel", *about, loads=loads),)


def memcpy(direction: str, moved: int) -> Steps:
    """Return one memcpy of so many bytes; those within the GPU are read and written."""
    factor = 2 if direction == "dtod" else 1
    return (Step("copy", direction, "memcpy", f"memcpy_{direction}", moved * factor),)


def memset(size: int = 0) -> Steps:
    """Return one memset."""
    return (Step("memset", "", "memset", "memset", size),)


def under(op: str, steps: Steps) -> Steps:
    """Return the same, launched by an op inside the called one."""
    return tuple(replace(step, op=step.op or op) for step in steps)


def unknown(reason: str) -> Steps:
    """Return the step that makes all that follows, and the count, unknown."""
    return (Step("unknown", reason),)


def error(reason: str) -> Steps:
    """Return the step that ends the call with an error."""
    return (Step("error", reason),)


def joined(parts: Iterable[Steps]) -> Steps:
    """Return all steps, in order."""
    return tuple(step for part in parts for step in part)


def pointwise(
    text: str, out: Tensor, inputs: Iterable[Tensor], *, flops: int = 1, algorithm: str = "elementwise",
    cast: bool = False,
) -> Steps:  # fmt: skip
    """Return the one kernel that works element by element; nothing for no elements."""
    if out.numel == 0:
        return ()
    read = tuple(inputs)
    moved = out.stored_bytes + sum(one.stored_bytes for one in read)
    family = _family(out, read, cast=cast, narrows=algorithm == "copy")
    prefix = {"vectorized": "vectorized_elementwise_kernel", "cast": "unrolled_elementwise_kernel"}
    hint = text or prefix.get(family, "elementwise_kernel")
    if family == "vectorized" and flops >= _HEAVY:
        family = "vectorized_heavy"
    elif family == "vectorized" and sum(one.shape != () for one in read) > 1:
        family = "vectorized_two"
    items = out.numel
    if family in ("strided", "transposed"):
        dims = merged_dims((out, *(one.expanded(out.shape) for one in read if one.shape)))
        items = items * _OFFSETS[min(dims, len(_OFFSETS) - 1)] // _OFFSETS[0]
    return kernel(hint, algorithm, family, moved, flops=flops * out.numel, dtype=out.dtype, items=items)


def merged_dims(operands: tuple[Tensor, ...]) -> int:
    """Return how many dimensions are left where all operands walk through neighbouring ones in one stride."""
    out = operands[0]
    order = sorted((dim for dim, size in enumerate(out.shape) if size != 1), key=lambda dim: out.strides[dim])
    dims = 0
    for inner, outer in zip([-1, *order], order, strict=False):
        joins = inner >= 0 and all(
            one.strides[outer] == one.strides[inner] * one.shape[inner] for one in operands
        )
        dims += not joins
    return dims


def _family(out: Tensor, read: tuple[Tensor, ...], *, cast: bool, narrows: bool) -> str:
    """Tell whether a kernel runs through memory in order, and if not, how far apart neighbours lie."""
    large = [one for one in read if one.shape]
    together = all(one.shape == out.shape and _same_order(one, out) for one in large)
    if together and (out.is_dense or out.is_contiguous):
        vectors = narrows and out.dtype in HALF_FROM and all(one.dtype == "fp32" for one in large)
        return "vectorized" if not cast else "cast_narrow" if vectors else "cast"
    if any(_crossed(one, out) for one in large if one.numel == out.numel):
        return "transposed"
    return "strided"


def _same_order(one: Tensor, other: Tensor) -> bool:
    sizes = zip(one.shape, one.strides, other.strides, strict=True)
    return all(first == second for size, first, second in sizes if size != 1)


def _crossed(one: Tensor, out: Tensor) -> bool:
    """Whether neighbours in one tensor lie far apart in the other."""
    if len(one.shape) != len(out.shape):
        return False
    inner = [dim for dim, size in enumerate(out.shape) if size > 1]
    if not inner:
        return False
    fast = min(inner, key=lambda dim: out.strides[dim])
    own = min(inner, key=lambda dim: one.strides[dim] or 1 << 62)
    return own != fast and one.strides[fast] > 1


def copied(source: Tensor, target: Tensor, *, op_text: str = "") -> Steps:
    """Return the copy of a tensor into another: a memcpy where bytes and order stay, else a kernel."""
    if target.numel == 0:
        return ()
    same = source.dtype == target.dtype and source.shape == target.shape
    runs = (source.is_dense and target.is_dense) or (source.is_contiguous and target.is_contiguous)
    if same and runs and _same_order(source, target):
        return under(COPY, memcpy("dtod", target.nbytes))
    seen = source if source.shape == target.shape else source.expanded(target.shape)
    cast = source.dtype != target.dtype
    text = op_text or _copy_text(source.dtype, target)
    return under(COPY, pointwise(text, target, [seen], flops=0, algorithm="copy", cast=cast))


def _copy_text(dtype: str, target: Tensor) -> str:
    if dtype == "fp32" and target.dtype in HALF_FROM:
        return {"bf16": "bfloat16_copy_kernel_cuda", "fp16": "float16_copy_kernel_cuda"}[target.dtype]
    return "direct_copy_kernel_cuda"


def contiguous(one: Tensor) -> tuple[Steps, Tensor]:
    """Return the copy that makes a tensor contiguous, if one is needed, and the contiguous tensor."""
    if one.is_contiguous:
        return (), one
    made = fresh(one.shape, one.dtype)
    if one.numel == 0:
        return (), made
    copy = pointwise("direct_copy_kernel_cuda", made, [one], flops=0, algorithm="copy")
    return under(COPY, copy), made


def converted(one: Tensor, dtype: str) -> tuple[Steps, Tensor]:
    """Return the kernel that makes a tensor of another type, and that tensor; contiguous."""
    made = fresh(one.shape, dtype)
    return copied(one, made), made


def fresh(shape: Iterable[int], dtype: str) -> Tensor:
    """Return a new contiguous tensor."""
    sizes = tuple(shape)
    return Tensor(sizes, dtype, row_major(sizes))


def like(inputs: Iterable[Tensor], dtype: str) -> Tensor:
    """Return the output that an elementwise op makes: in the memory order of its dense inputs."""
    read = tuple(inputs)
    shape = broadcast(*(one.shape for one in read))
    for one in read:
        if one.shape == shape and one.is_dense:
            return Tensor(shape, dtype, one.strides)
    return fresh(shape, dtype)
