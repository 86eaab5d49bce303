"""Casts to another floating-point type and back, and what was done in between."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._ancestry import called_op, enclosing
from tracehunch.checks._casts import (
    BITS,
    FLOATS,
    LISTED,
    Cast,
    Operands,
    Work,
    casts_of,
    runs,
    targets_by_name,
    work_of,
)
from tracehunch.checks._once import once
from tracehunch.facts.model import Facts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Link, Tree
from tracehunch.tree.names import ENGINE_PREFIX, names_that

_REACH: Final = 16
"""Activities from a cast to the one back: what lies further apart was hardly meant as one step."""
_MANY_TIMES: Final = 4
"""Kernels of one tensor differ by no more than this in threads, since each thread does 4 to 16 elements."""
_ONE_BLOCK: Final = 128
_TELLING: Final = 8192
"""Threads from which on two tensors of the same number of them hardly differ in size."""
_CASTING: Final = frozenset({"aten::to", "aten::_to_copy", "aten::type_as"})
_SAME_RESULT: Final = """
    relu gelu silu mish elu celu selu leaky_relu hardtanh hardswish hardsigmoid sigmoid tanh softplus neg abs
    exp log sqrt rsqrt reciprocal sin cos mul div add sub rsub clamp clamp_min clamp_max pow square
    native_dropout _softmax _log_softmax
"""
_ALONE: Final = frozenset(f"aten::{name}{end}" for name in _SAME_RESULT.split() for end in ("", "_"))
"""Ops that compute in float32 inside whatever the type of their only tensor, and round the result once."""
_OF_TWO: Final = frozenset(f"aten::{name}" for name in ("mul", "div", "add", "sub", "rsub", "pow"))
_WITH_NUMBER: Final = ("AUnaryFunctor<", "BUnaryFunctor<", "FunctorOnSelf", "pow_tensor_scalar")
"""Ops that may have a second tensor, and what their kernels are named with a number in its place."""
_MEANS: Final = frozenset(f"aten::{name}" for name in ("mean", "sum", "var", "var_mean", "std", "norm"))
_ROOTS: Final = frozenset(f"aten::{name}" for name in ("rsqrt", "sqrt", "rsqrt_", "sqrt_", "norm"))


class Kind(Enum):
    """What was done with the tensor between the casts."""

    NOTHING = "nothing"
    ONE_OP = "one op whose result is the same in either type"
    NORM = "a norm written by hand"


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A cast and the cast back; ``used_by`` are the ops in between that (may) take what the first made."""

    out: Cast
    back: Cast
    kind: Kind
    used_by: tuple[int, ...]
    rows: tuple[int, ...]  # what a fix does away with: the casts; of a norm everything from cast to cast
    backward: tuple[int, ...] = ()  # rows of the casts that autograd makes for those two
    sure: bool = (
        False  # shapes tell that the second cast takes what the first made, and that nothing else does
    )


@once
def round_trips(facts: Facts) -> tuple[RoundTrip, ...]:
    """Find the round trips of a program, each with what autograd does in its wake; once for each trace."""
    work = work_of(facts)
    casts = casts_of(facts, work)
    if not casts:
        return ()
    rows = np.array([cast.row for cast in casts], dtype=np.int64)
    node = enclosing(facts.tree, rows, lambda name: name.startswith(ENGINE_PREFIX))
    asked_for = _asked_for(facts, rows) & (node == NONE)
    chosen = [cast for cast, wanted in zip(casts, asked_for, strict=True) if wanted]
    found = _Walk(facts.tree, work, {cast.at: cast for cast in chosen}).round_trips()
    return tuple(_with_backward(facts, found, rows[node != NONE], node[node != NONE]) if found else ())


def rows_of_casts(trips: Iterable[RoundTrip]) -> Int64:
    """Rows of the casts themselves, ascending."""
    rows = [row for trip in trips for row in (trip.out.row, trip.back.row, *trip.backward)]
    return np.unique(np.array(rows, dtype=np.int64))


def _asked_for(facts: Facts, rows: Int64) -> NDArray[np.bool_]:
    """Tell casts that a program wrote from those inside ops that are about something else."""
    called = called_op(facts.tree, rows)
    casting = names_that(facts.tree.trace, _CASTING.__contains__)
    found: NDArray[np.bool_] = (called != NONE) & casting[facts.tree.trace.name[called]]
    return found


def _with_backward(facts: Facts, trips: list[RoundTrip], rows: Int64, nodes: Int64) -> list[RoundTrip]:
    """Add to each round trip the casts of the autograd nodes that its two casts have."""
    tree = facts.tree
    of_forward: dict[int, list[int]] = {}
    for row, node in zip(rows.tolist(), nodes.tolist(), strict=True):
        of_forward.setdefault(tree.backward_of.get(node, NONE), []).append(row)
    return [
        trip if trip.kind is Kind.NORM else replace(trip, backward=_backward_of(tree, trip, of_forward))
        for trip in trips
    ]


def _backward_of(tree: Tree, trip: RoundTrip, of_forward: Mapping[int, list[int]]) -> tuple[int, ...]:
    around = {op for cast in (trip.out, trip.back) for op in (cast.op, *tree.ancestors(cast.op))}
    return tuple(row for op in sorted(around) for row in of_forward.get(op, ()))


class _Walk:
    """The work of a program, walked from a cast to the one that undoes it."""

    def __init__(self, tree: Tree, work: Work, casts: dict[int, Cast]) -> None:
        self.tree, self.trace, self.work, self.casts = tree, tree.trace, work, casts
        self.run = runs(tree, work)
        self.taken: set[int] = set()

    @cached_property
    def given(self) -> Operands:
        """What the op of each entry was given."""
        return Operands(self.trace, self.work.op)

    def round_trips(self) -> list[RoundTrip]:
        """Find each cast that a later one undoes; no cast is in two round trips."""
        found = []
        for cast in self.casts.values():
            trip = self._back_from(cast)
            if trip is not None:
                self.taken.add(trip.back.at)
                found.append(trip)
        return [replace(trip, sure=self._is_sure(trip)) for trip in found]

    def _back_from(self, out: Cast) -> RoundTrip | None:
        """Find the round trip that begins with a cast."""
        used_by: list[int] = []
        if out.at in self.taken or _is_number(out):
            return None
        for at in self._following(out.at):
            back = self.casts.get(at)
            if back is not None and at not in self.taken and self._undoes(back, out):
                return self._trip(out, back, tuple(used_by))
            op = int(self.work.op[at])
            if op not in used_by and self._may_use(at, out):
                used_by.append(op)
        return None

    def _undoes(self, back: Cast, out: Cast) -> bool:
        """Tell whether a cast turns what another made into the type and size that it had."""
        if out.elements and back.elements:
            return (back.source, back.target, back.elements) == (out.target, out.source, out.elements)
        few, many = sorted((out.threads, back.threads))
        if not few or many > _MANY_TIMES * few:
            return False
        # a cast to 16 bits and one of another tensor to 32 follow each other in many programs
        wider = BITS[out.target] > BITS[back.target]
        return wider or (few >= _TELLING and many % few == 0 and self._is_next(back, out))

    def _is_next(self, back: Cast, out: Cast) -> bool:
        """Tell whether the program called nothing between two casts, as in ``x.bfloat16().float()``."""
        if back.at != out.at + 1 or BITS[out.target] == BITS[back.target]:
            return False
        first, second = called_op(self.tree, np.array([out.row, back.row])).tolist()
        end, begin = self.trace.end_ns()[first], self.trace.start_ns[second]
        starts = self._starts[int(self.trace.thread[first])]
        return bool(np.searchsorted(starts, end) == np.searchsorted(starts, begin))

    @cached_property
    def _starts(self) -> dict[int, Int64]:
        """When the ops of each thread start, ascending."""
        ops, start, thread = self.tree.ops, self.trace.start_ns, self.trace.thread
        return {one: np.sort(start[ops[thread[ops] == one]]) for one in np.unique(thread[ops]).tolist()}

    def _following(self, at: int) -> range:
        """Activities after one, of its thread and step."""
        last = min(at + 1 + _REACH, len(self.work))
        run = self.run[at:last]
        other = np.flatnonzero(run != run[0])
        return range(at + 1, at + int(other[0]) if other.size else last)

    def _may_use(self, at: int, made_by: Cast) -> bool:
        """Tell whether an activity may read what a cast made; any may where shapes were not recorded."""
        cast = self.casts.get(at)
        if not made_by.elements:
            return True
        if cast is not None:
            return at not in self.taken and (cast.source, cast.elements) == (made_by.target, made_by.elements)
        same_size = [one.dtype for one in self.given.of(at) if one.elements == made_by.elements]
        return any(dtype == LISTED or FLOATS.get(dtype) == made_by.target for dtype in same_size)

    def _trip(self, out: Cast, back: Cast, used_by: tuple[int, ...]) -> RoundTrip | None:
        kind = self._kind(out, back, used_by)
        if kind is None:
            return None
        inside = self.work.row[out.at : back.at + 1].tolist()
        rows = tuple(inside) if kind is Kind.NORM else (out.row, back.row)
        return RoundTrip(out, back, kind, used_by, rows)

    def _kind(self, out: Cast, back: Cast, used_by: tuple[int, ...]) -> Kind | None:
        if not used_by:
            return Kind.NOTHING
        wider = BITS[out.target] > BITS[back.target]
        inside = {self.trace.name_of(op) for op in self.work.op[out.at + 1 : back.at].tolist()}
        if wider and inside & _MEANS and inside & _ROOTS:
            return Kind.NORM
        alone = len(used_by) == 1 and self._is_alone(used_by[0], out, back)
        return Kind.ONE_OP if wider and alone else None

    def _is_alone(self, op: int, out: Cast, back: Cast) -> bool:
        """Tell whether an op computes the same in either type, from one tensor and numbers."""
        name = self.trace.name_of(op)
        if not out.elements:
            row = int(self.work.row[out.at + 1])
            with_number = any(word in self.trace.name_of(row) for word in _WITH_NUMBER)
            return name in _ALONE and (name.removesuffix("_") not in _OF_TWO or with_number)
        at = out.at + 1 + self.work.op[out.at + 1 : back.at].tolist().index(op)
        return name in _ALONE and sum(one.elements != 1 for one in self.given.of(at)) == 1

    def _is_sure(self, trip: RoundTrip) -> bool:
        """Tell whether nothing after the second cast reads a tensor like that of the first.

        Before another such tensor is made; else the second cast may be of another tensor.
        """
        out = trip.out
        for at in self._following(trip.back.at):
            cast = self.casts.get(at)
            if cast is not None and (cast.target, cast.elements) == (out.target, out.elements):
                break
            if self._may_use(at, out):
                return False
        return bool(out.elements)


def _is_number(cast: Cast) -> bool:
    """Tell casts of single numbers, such as loss scales; of a block's work, where sizes are unknown."""
    return cast.elements == 1 or (not cast.elements and 0 < cast.threads <= _ONE_BLOCK)


def replayed_round_trips(facts: Facts) -> Int64:
    """Find kernels without ops that cast to another type and back, one right after the other on a stream."""
    tree = facts.tree
    trace, table = tree.trace, tree.trace.gpu
    targets = targets_by_name(facts)
    at = np.flatnonzero((tree.op[table.row] == NONE) & (tree.link[table.row] == Link.LINKED))
    at = at[np.lexsort((trace.start_ns[table.row[at]], table.stream[at], table.device[at]))]
    bits = np.array([BITS.get(targets.get(name) or "", 0) for name in trace.names], dtype=np.int64)
    width = bits[trace.name[table.row[at]]]
    threads = np.maximum(table.grid[at].prod(axis=1) * table.block[at].prod(axis=1), 1)
    same_stream = (np.diff(table.stream[at]) == 0) & (np.diff(table.device[at]) == 0)
    alike = np.maximum(threads[1:], threads[:-1]) <= _MANY_TIMES * np.minimum(threads[1:], threads[:-1])
    first = np.flatnonzero(same_stream & alike & (width[:-1] > width[1:]) & (width[1:] > 0))
    return np.sort(table.row[at[np.concatenate([first, first + 1])]].astype(np.int64))
