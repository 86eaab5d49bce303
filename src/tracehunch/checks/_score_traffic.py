"""How often attention by hand writes its scores to memory and reads them back, and how many bytes that is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tracehunch.checks._attention_by_hand import is_softmax
from tracehunch.checks._attention_work import ByHand
from tracehunch.checks._products import elements
from tracehunch.tree import NONE, Tree

_ELEMENT_BYTES: Final[Mapping[str, int]] = {
    "double": 8,
    "float": 4,
    "c10::BFloat16": 2,
    "c10::Half": 2,
    "bool": 1,
    "unsigned char": 1,
}
_COPY: Final = "aten::copy_"
_ONLY_WRITES: Final = frozenset({"aten::fill_", "aten::zero_", "aten::bernoulli_"})
_FULL_PRECISION: Final = "True"


@dataclass(frozen=True, slots=True)
class Traffic:
    """Score matrices written and read between the GPU and its memory by one attention."""

    times_written: int
    times_read: int
    written_bytes: int
    read_bytes: int


def score_traffic(tree: Tree, one: ByHand) -> Traffic | None:
    """Add up the score matrices that each op launched for one attention reads and writes.

    None where shapes or types were not recorded.
    """
    if one.sizes is None or one.dtype not in _ELEMENT_BYTES:
        return None
    ops = np.unique(tree.op[one.rows])
    moved = [each for op in ops[ops != NONE].tolist() for each in _moved(tree, one, op)]
    written = [n_bytes for direction, n_bytes in moved if direction == "write"]
    read = [n_bytes for direction, n_bytes in moved if direction == "read"]
    return Traffic(len(written), len(read), sum(written), sum(read))


def element_bytes(dtype: str) -> int:
    """Bytes of one element of a recorded type; 0 for one that is not known."""
    return _ELEMENT_BYTES.get(dtype, 0)


def _moved(tree: Tree, one: ByHand, op: int) -> Iterator[tuple[str, int]]:
    assert one.sizes is not None
    trace, n_scores = tree.trace, one.sizes.scores
    name, args = trace.name_of(op), trace.args_of(op)
    if op == one.chain.scores_op:
        yield "write", n_scores * element_bytes(one.dtype)
        return
    types = _types_of_scores(args, n_scores)
    if op == one.chain.values_op:
        types = types[:1]
    elif name == _COPY:
        yield from (("write", n_scores * element_bytes(kind)) for kind in types[:1])
        types = types[1:]
    elif types:
        yield "write", n_scores * element_bytes(_result(name, args, types))
        if name.startswith("triton_") and len(types) > 1:
            types = types[:-1]  # the last is what it writes
    if name not in _ONLY_WRITES:
        yield from (("read", n_scores * element_bytes(kind)) for kind in types)


def _types_of_scores(args: Mapping[str, Any], n_scores: int) -> list[str]:
    dims, types = args.get("Input Dims"), args.get("Input type")
    if not isinstance(dims, list) or not isinstance(types, list):
        return []
    return [str(kind) for entry, kind in zip(dims, types, strict=False) if elements(entry) == n_scores]


def _result(name: str, args: Mapping[str, Any], types: list[str]) -> str:
    """Say what type an op writes: that of its first scores, but for a softmax that widens them."""
    stated = args.get("Concrete Inputs")
    if is_softmax(name) and isinstance(stated, list) and len(stated) > 2:
        return "float" if str(stated[2]) == _FULL_PRECISION else types[0]
    return types[-1 if name.startswith("triton_") else 0]
