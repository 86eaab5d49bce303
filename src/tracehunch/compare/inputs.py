"""What the ops of a use were given, as far as shapes were recorded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tracehunch.tree import NONE
from tracehunch.units import join

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracehunch.tree import Tree

_SAMPLES: Final = 64
_SHOWN: Final = 2
_TENSORS: Final = 4  # inputs of an op that are told
_TYPES: Final = {
    "c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32", "double": "fp64", "long int": "int64",
    "int": "int32", "bool": "bool", "c10::Float8_e4m3fn": "fp8-e4m3", "c10::Float8_e5m2": "fp8-e5m2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input: its shape, its strides where recorded, and what its elements are."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        sizes = " x ".join(map(str, self.shape)) or "scalar"
        return f"{sizes} {self.dtype}".strip()

    @property
    def repeated(self) -> tuple[int, int] | None:
        """Return the dimension (counted from 0) that is repeated without memory, and how often; else None."""
        for at, (size, stride) in enumerate(zip(self.shape, self.strides, strict=False)):
            if size > 1 and stride == 0:
                return at, size
        return None


Inputs = tuple[Tensor, ...]


def inputs_of(tree: Tree, op: int) -> Inputs:
    """Return the tensors that an op was given; () where shapes were not recorded."""
    args = tree.trace.args_of(op)
    shapes, types = args.get("Input Dims"), args.get("Input type")
    if not isinstance(shapes, list) or not isinstance(types, list):
        return ()
    strides = args.get("Input Strides")
    found = []
    for at, (shape, kind) in enumerate(zip(shapes, types, strict=False)):
        sizes = _whole(shape)
        if sizes is None or not isinstance(kind, str) or kind in ("Scalar", "ScalarList", ""):
            continue
        given = strides[at] if isinstance(strides, list) and at < len(strides) else None
        found.append(Tensor(sizes, _whole(given) or (), _TYPES.get(kind, kind.removeprefix("c10::"))))
    return tuple(found)


def usual_inputs(tree: Tree, rows: Iterable[int]) -> Counter[tuple[str, ...]]:
    """Count the inputs, in words, of the ops that launched some rows; empty where none were recorded."""
    seen: Counter[tuple[str, ...]] = Counter()
    for row in list(rows)[:_SAMPLES]:
        op = int(tree.op[row])
        if op != NONE and (found := inputs_of(tree, op)):
            seen[tuple(str(one) for one in found[:_TENSORS])] += 1
    return seen


def inputs_text(seen: Counter[tuple[str, ...]]) -> str:
    """``(4096 x 1024 bf16, 1024 x 4096 bf16)``, the most frequent ones."""
    shown = [f"({', '.join(one)})" for one, _ in seen.most_common(_SHOWN)]
    more = len(seen) - len(shown)
    return join(shown) + (f" and {more} more" if more > 0 else "")


def _whole(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, list) and all(isinstance(one, int) for one in value):
        return tuple(value)
    return None
