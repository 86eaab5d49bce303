"""The ops that take most of a rank's time, by step: what it did in the steps in which it was late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.ranks.host import own_times
from tracehunch.compare.ranks.model import OpSteps
from tracehunch.compare.ranks.summary import calls_of_steps, in_order
from tracehunch.trace.model import UNKNOWN_NS
from tracehunch.tree import NONE, work_of
from tracehunch.tree.ownership import Spans
from tracehunch.units import NAME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracehunch.facts.model import Facts
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree
    from tracehunch.tree.ownership import Layout, Ownership

_STEP: Final = "ProfilerStep"
_MOST_OPS: Final = 40
_FEWEST_OPS: Final = 4
_MOST_CELLS: Final = 20_000
"""Numbers in a table: 80 kB of them."""


@dataclass(frozen=True, slots=True)
class _Spent:
    """Times by item of a layout: code of the op's name, and how long."""

    item: Int64
    name: Int64
    time_ns: Int64


def gpu_steps(facts: Facts, ops: Iterable[str]) -> OpSteps:
    """Return the GPU time of the first of ``ops``, by the step that launched it."""
    tree = facts.tree
    trace, steps = tree.trace, _steps(tree)
    row = trace.gpu.row.astype(np.int64)
    if steps is None or not row.size:
        return OpSteps()
    known = (trace.start_ns[row] != UNKNOWN_NS) & (tree.op[row] != NONE) & (trace.dur_ns[row] != UNKNOWN_NS)
    item = np.flatnonzero(known)
    spent = _Spent(item, trace.name[tree.op[row[item]]].astype(np.int64), trace.dur_ns[row[item]])
    return _table(trace.names, steps.gpu, spent, _most(ops, len(steps.spans)), len(steps.spans))


def host_steps(facts: Facts, ops: Iterable[str]) -> OpSteps:
    """Return the host's own time in the first of ``ops``, by step."""
    tree = facts.tree
    steps = _steps(tree)
    if steps is None:
        return OpSteps()
    row, op_row, time_ns = own_times(tree)
    layout = steps.layout(work_of(tree.trace, row, tree.engine))
    spent = _Spent(np.arange(row.size), tree.trace.name[op_row].astype(np.int64), time_ns)
    return _table(tree.trace.names, layout, spent, _most(ops, len(steps.spans)), len(steps.spans))


def _steps(tree: Tree) -> Ownership | None:
    """Return what each of the steps owns, in the order of ``steps_of``; None where there are none."""
    calls = in_order(tree, calls_of_steps(tree))
    if not calls.size:
        return None
    spans = tree.ownership.spans
    return tree.ownership.of(
        Spans(
            spans.row[calls],
            spans.thread[calls],
            spans.process[calls],
            spans.start_ns[calls],
            spans.end_ns[calls],
        )
    )


def _most(ops: Iterable[str], steps: int) -> tuple[str, ...]:
    """Return those that are kept; fewer of them where there are many steps."""
    most = max(_FEWEST_OPS, min(_MOST_OPS, _MOST_CELLS // steps))
    return tuple(op for op in ops if op and not op.startswith(_STEP))[:most]


def _table(names: Sequence[str], layout: Layout, spent: _Spent, ops: tuple[str, ...], steps: int) -> OpSteps:
    code = _codes(names, ops)[spent.name] if spent.name.size else spent.name
    step = layout.last_call()[spent.item]
    kept = (code >= 0) & (step >= 0)
    cell = code[kept] * steps + step[kept]
    total = np.bincount(cell, weights=spent.time_ns[kept], minlength=len(ops) * steps) / 1e3
    return OpSteps(ops, total.reshape(len(ops), steps).astype(np.float32))


def _codes(names: Sequence[str], chosen: Sequence[str]) -> Int64:
    """Return for each name of the trace its place among the chosen ones; -1: none."""
    place = {op: at for at, op in enumerate(chosen)}
    return np.array([place.get(one[:NAME_LIMIT], -1) for one in names], dtype=np.int64)
