"""What differs between the runs of code that was compiled several times, as far as recorded sizes show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.checks._products import sizes
from tracehunch.facts.compiled.compilations import region_id
from tracehunch.facts.compiled.rows import annotated, is_region
from tracehunch.facts.compiler import innermost, is_compiler
from tracehunch.tree import NONE, Tree
from tracehunch.units import count

_COMPARED: Final = 16
"""Ops of each run that are compared with those of the others."""


@dataclass(frozen=True, slots=True)
class Change:
    """One dimension of an op's input that differs between versions of the code."""

    op: str
    number: int  # of the input, from 0
    dimension: int
    shape: tuple[int, ...]  # in the first version
    values: tuple[int, ...]  # in the order of the versions

    def __str__(self) -> str:
        shape = " x ".join(count(size) for size in self.shape)
        values = ", ".join(count(value) for value in dict.fromkeys(self.values))
        return f"dimension {self.dimension} of input {self.number} of {self.op} ({shape}): {values}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The versions of one function that ran in the trace, that show sizes, and the first one that differs."""

    ran: int
    with_sizes: int
    change: Change | None


def compared(tree: Tree, code: int, compilations: Sequence[int]) -> Comparison:
    """Compare the versions of a compiled function: by what they run, else by what was traced for them.

    ``compilations`` are the rows of its compilations, in order of time.
    """
    first: dict[int, int] = {}  # version -> its first run
    for row in annotated(tree, is_region).tolist():
        number, version = region_id(tree.trace.name_of(row))
        if number == code and code != NONE:
            first.setdefault(version, row)
    runs = [_inputs(tree, row) for _, row in sorted(first.items())]
    traced = [_inputs(tree, row, traced=True) for row in compilations]
    known = max((sum(map(bool, ops)) for ops in (runs, traced)), default=0)
    return Comparison(len(first), known, _first_change(runs) or _first_change(traced))


def _first_change(runs: list[list["_Op"]]) -> Change | None:
    if len(runs) < 2:
        return None
    changes = (_difference(list(ops)) for ops in zip(*runs, strict=False))
    return next((change for change in changes if change is not None), None)


_Op = tuple[str, list[tuple[int, ...]]]


def _inputs(tree: Tree, region: int, *, traced: bool = False) -> list[_Op]:
    """Names and input sizes of the first ops of a run, without those of trial runs, or of a compilation."""
    trace, ops = tree.trace, tree.ops
    start, end = trace.start_ns[region], trace.start_ns[region] + trace.dur_ns[region]
    inside = (
        (trace.thread[ops] == trace.thread[region])
        & (trace.start_ns[ops] > start)
        & (trace.start_ns[ops] < end)
    )
    rows = ops[inside]
    rows = rows if traced else rows[innermost(tree, rows, is_compiler) == NONE]
    rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
    found: list[_Op] = []
    for row in rows.tolist():
        dims = trace.args_of(row).get("Input Dims")
        shapes = [sizes(entry) for entry in dims] if isinstance(dims, list) else []
        if any(shapes):
            found.append((trace.name_of(row), shapes))
        if len(found) == _COMPARED:
            break
    return found


def _difference(ops: list[_Op]) -> Change | None:
    name, shapes = ops[0]
    if any(other != name or len(sizes_) != len(shapes) for other, sizes_ in ops):
        return None
    for number, shape in enumerate(shapes):
        alike = [other[number] for _, other in ops]
        if any(len(each) != len(shape) for each in alike):
            continue
        for dimension in range(len(shape)):
            values = tuple(each[dimension] for each in alike)
            if len(set(values)) > 1:
                return Change(name, number, dimension, shape, values)
    return None
