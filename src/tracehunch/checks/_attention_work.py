"""What belongs to each attention by hand: the ops that the program called, and what they launched."""

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from tracehunch.checks._activities import on_gpu
from tracehunch.checks._ancestry import called_op
from tracehunch.checks._attention_by_hand import Chain, Sizes, chains, is_generated, is_softmax
from tracehunch.checks._products import BATCHED, elements, sizes
from tracehunch.facts.model import Facts
from tracehunch.trace.model import Int64, Trace
from tracehunch.tree import NONE, Link, Tree
from tracehunch.tree.keys import distinct


def _both_forms(*names: str) -> frozenset[str]:
    return frozenset(f"aten::{name}{form}" for name in names for form in ("", "_"))


_STEPS: Final = _both_forms(
    *("mul", "div", "add", "sub", "masked_fill", "where", "to", "dropout", "baddbmm", "masked_softmax")
)
"""Of these attention has at least one beside the products and the softmax: a scale, a mask, a cast ..."""
_BETWEEN: Final = _STEPS | _both_forms(
    *("softmax", "_softmax", "_masked_softmax", "_to_copy", "copy", "clone", "contiguous", "reshape"),
    *("type_as", "float", "native_dropout", "bernoulli", "tril", "triu", "ones", "full", "fill", "maximum"),
    *("max", "clamp", "tanh", "neg", "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "bitwise_not"),
    *("logical_and", "arange", "matmul", "bmm", "einsum", "scalar_tensor"),
)
"""What attention by hand does to its scores, by the op that the program calls."""
_MASKS: Final = ("masked_fill", "where", "masked_softmax", "tril")
_ADDING_PRODUCT: Final = "aten::baddbmm"
_BETA: Final = 3  # its position among the inputs
_ADDS: Final = frozenset({"aten::add", "aten::add_", _ADDING_PRODUCT})
_FEW: Final = 24
"""Activities between two products that may still be one attention."""


@dataclass(frozen=True, slots=True)
class ByHand:
    """One attention by hand. ``masked``: scores are masked, or something is added to them."""

    chain: Chain
    masked: bool
    biased: bool  # what is added or masks is no causal triangle: it differs by head, or not by query
    dropped: bool  # with dropout on the weights
    called: Int64  # ops that the program called, which make up the attention
    rows: Int64  # GPU activities, in a CPU trace the called ops

    @property
    def sizes(self) -> Sizes | None:
        """Its sizes; None where shapes were not recorded."""
        return self.chain.sizes

    @property
    def dtype(self) -> str:
        """Type of the products' inputs as recorded, "" unknown."""
        return self.chain.dtype


@dataclass(frozen=True, slots=True)
class Found:
    """What was found, and what may be attention but cannot be told without shapes (activities)."""

    by_hand: list[ByHand]
    unsure: Int64


def attention_by_hand(facts: Facts) -> Found:
    """Find attention by hand in a whole trace, forward passes only."""
    found: list[ByHand] = []
    unsure = [np.empty(0, dtype=np.int64)]
    candidates = chains(facts.tree)
    work = _Work.of(facts, candidates) if candidates else None
    if work is not None:
        work.read_inputs(candidates)
    for chain in candidates:
        one = None if work is None else work.attention(chain)
        if one is not None:
            found.append(one)
        elif work is not None and chain.sizes is None and work.inside(chain).size <= _FEW:
            unsure.append(work.inside(chain))
    return Found(found, np.concatenate(unsure))


@dataclass(frozen=True, slots=True)
class _Work:
    """What may belong to an attention (GPU activities, or a CPU's ops) by thread and time of launch."""

    tree: Tree
    rows: Int64
    op: Int64
    called: Int64
    thread: Int64
    start_ns: Int64
    called_for: dict[int, int]  # op of a chain -> the op that the program called

    @classmethod
    def of(cls, facts: Facts, candidates: list[Chain]) -> Self:
        tree, gpu = facts.tree, on_gpu(facts)
        trace = tree.trace
        rows = trace.gpu.row.astype(np.int64)[tree.link[trace.gpu.row] == Link.LINKED] if gpu else tree.ops
        op, called = tree.op[rows].astype(np.int64), called_op(tree, rows)
        called = np.where(called == NONE, op, called)
        if not gpu:
            rows = op = called = np.unique(called[called != NONE])
        host = tree.launch[rows].astype(np.int64) if gpu else rows
        thread, start = trace.thread[host].astype(np.int64), trace.start_ns[host]
        order = np.lexsort((start, thread))
        called_for = _called(tree, [row for chain in candidates for row in chain[:3]])
        return cls(tree, rows[order], op[order], called[order], thread[order], start[order], called_for)

    def read_inputs(self, candidates: list[Chain]) -> None:
        """Read what ops inside chains were given, all at once, so that each is known when asked for."""
        parts = [self._slice(chain) for chain in candidates if chain.sizes is not None]
        ops = [column[part] for part in parts for column in (self.op, self.called)]
        rows = distinct(np.concatenate([self.op[:0], *ops]))
        self.tree.trace.inputs_of(rows[rows != NONE])

    def inside(self, chain: Chain) -> Int64:
        """Return the work from the first product to the second, whatever it is about."""
        return self.rows[self._slice(chain)]

    def attention(self, chain: Chain) -> ByHand | None:
        """Return the attention, with the work that is about its scores; None where that cannot be told."""
        trace, part = self.tree.trace, self._slice(chain)
        op, called = self.op[part], self.called[part]
        if chain.sizes is None:
            if not self._is_plain(chain, called):
                return None
            mine = np.ones(called.size, dtype=bool)
        else:
            ends = {*chain[:3], *(self.called_for[row] for row in chain[:3])}
            n_scores = chain.sizes.scores
            rows = {*op.tolist(), *called.tolist()}
            about = {row: row in ends or _touches(trace, row, n_scores) for row in rows}
            mine = np.array([about[a] or about[b] for a, b in zip(op, called, strict=True)], dtype=bool)
        if not mine.any():
            return None
        ops = np.unique(called[mine])
        names = [trace.name_of(int(row)) for row in ops]
        biased = any(_is_no_triangle(trace, int(row), chain.sizes) for row in ops)
        return ByHand(
            chain,
            masked=biased or any(_masks(trace, int(row)) for row in ops),
            biased=biased,
            dropped=any("dropout" in name for name in names),
            called=ops,
            rows=self.rows[part][mine],
        )

    def _slice(self, chain: Chain) -> slice:
        trace = self.tree.trace
        first, last = self.called_for[chain.scores_op], self.called_for[chain.values_op]
        thread = int(trace.thread[first])
        low, high = np.searchsorted(self.thread, [thread, thread + 1])
        start, end = trace.start_ns[first], trace.start_ns[last] + max(int(trace.dur_ns[last]), 0)
        begin, stop = np.searchsorted(self.start_ns[low:high], [start, end])
        return slice(int(low + begin), int(low + stop))

    def _is_plain(self, chain: Chain, called: Int64) -> bool:
        """Tell, from names alone, whether there is nothing but attention between the products."""
        trace = self.tree.trace
        names = {trace.name_of(int(row)) for row in called if row != NONE}
        batched = {trace.name_of(row) for row in (chain.scores_op, chain.values_op)} <= BATCHED
        stepped = not names.isdisjoint(_STEPS) or is_generated(trace.name_of(chain.softmax_op))
        return batched and stepped and all(name in _BETWEEN or is_softmax(name) for name in names)


def _called(tree: Tree, rows: list[int]) -> dict[int, int]:
    """Return the op that the program called for each row; the row itself in compiled code."""
    found = called_op(tree, np.array(rows, dtype=np.int64)).tolist()
    return {row: row if called == NONE else called for row, called in zip(rows, found, strict=True)}


def _touches(trace: Trace, row: int, n_scores: int) -> bool:
    """Tell whether an op was recorded with an input as large as the scores."""
    dims = trace.input_of(row).dims if row != NONE else None
    return isinstance(dims, list) and any(elements(entry) == n_scores for entry in dims)


def _masks(trace: Trace, row: int) -> bool:
    """Tell whether an op masks scores, or adds another tensor to them."""
    name = trace.name_of(row)
    if any(word in name for word in _MASKS):
        return True
    return name in _ADDS and len(_tensors(trace, row)) > 1 and not _ignores_addend(trace, row)


def _ignores_addend(trace: Trace, row: int) -> bool:
    """Tell ``baddbmm(..., beta=0)``, whose first tensor only gives the sizes."""
    stated = trace.input_of(row).values
    beta = str(stated[_BETA]) if isinstance(stated, list) and len(stated) > _BETA else ""
    return trace.name_of(row) == _ADDING_PRODUCT and beta in ("0", "0.", "0.0")


def _is_no_triangle(trace: Trace, row: int, known: Sizes | None) -> bool:
    """Tell whether what an op adds or masks with has rows of its own for heads, or none for queries."""
    name, shapes = trace.name_of(row), _tensors(trace, row)
    if known is None or not shapes or not _masks(trace, row):
        return False
    if name == _ADDING_PRODUCT:
        return shapes[0][0] > 1
    others = [shape for shape in shapes if math.prod(shape) != known.scores]
    if any(len(shape) > 1 and shape[-1] == known.keys and shape[-2] == 1 < known.queries for shape in others):
        return True
    return name in _ADDS and all(len(shape) > 2 and shape[-3] > 1 for shape in shapes)


def _tensors(trace: Trace, row: int) -> list[tuple[int, ...]]:
    """Sizes of an op's inputs of more than one element, as recorded."""
    dims = trace.input_of(row).dims
    return [sizes(entry) for entry in dims if elements(entry) > 1] if isinstance(dims, list) else []
