"""Loops over the rows of a tensor, told from the loops that every model has."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.checks._activities import launched, uses
from tracehunch.checks._ancestry import called_op
from tracehunch.checks._copy_fixes import MULTIPLYING
from tracehunch.checks._loops import Loop, loops, repeats
from tracehunch.checks._once import once
from tracehunch.checks._scopes import durations_us
from tracehunch.facts.model import Facts, KernelUse
from tracehunch.kernels import is_copy_kernel
from tracehunch.trace.model import UNKNOWN_NS, Int64
from tracehunch.tree import Link
from tracehunch.tree.keys import Lookup, is_among
from tracehunch.tree.names import names_that

_TINY_US: Final = 10.0
_LOOKED_AT: Final = 64
_NEARLY_ALL: Final = 0.9
"""Passes whose operands are compared, and the part of them that must be alike."""

_INDEXING: Final = """
    select slice narrow index index_put_ index_put index_fill_ index_copy_ index_add_ index_select gather
    scatter_ scatter_add_ take select_scatter slice_scatter
"""
INDEXING: Final = frozenset(f"aten::{name}" for name in _INDEXING.split())
_ROWS_OF: Final = frozenset({"aten::unbind", "aten::split", "aten::chunk", "aten::tensor_split"})
"""Ops whose results a loop takes one by one, without an indexing op of its own."""
_OPTIMIZER: Final = "Optimizer.step#"


@dataclass(frozen=True, slots=True)
class RowLoop:
    """A loop over rows: the names of one pass, what it called and what that launched, in order."""

    pattern: tuple[str, ...]
    iterations: int
    ops: Int64
    rows: Int64  # GPU activities, but for copies to the host
    reads: Int64  # copies to the host
    of_one_pass: int
    same_sizes: bool  # as recorded shapes tell


@once
def row_loops(facts: Facts) -> list[RowLoop]:
    """Find loops whose passes index a tensor and launch tiny activities, and multiply no matrices."""
    candidates = [loop for loop in loops(facts) if _is_over_rows(facts, loop)]
    if not candidates:
        return []
    gpu = launched(facts, lambda _: True)
    called, reads = Lookup.of(called_op(facts.tree, gpu)), launched(facts, _goes_to_the_host)
    found = (_with_activities(facts, loop, gpu[called.having(loop.ops)], reads) for loop in candidates)
    return [loop for loop in found if loop is not None]


def unnamed_loops(facts: Facts) -> Int64:
    """Find tiny activities that repeat a short pattern with a write in it, where no ops were recorded."""
    tree = facts.tree
    if tree.ops.size or not tree.launches.size:
        return np.empty(0, dtype=np.int64)
    trace, table = tree.trace, tree.trace.gpu
    at = np.flatnonzero((tree.link[table.row] == Link.LINKED) & (trace.start_ns[table.row] != UNKNOWN_NS))
    at = at[np.lexsort((trace.start_ns[table.row[at]], table.stream[at], table.device[at]))]
    rows = table.row[at].astype(np.int64)
    writes = names_that(trace, {use.name for use in uses(facts) if _only_writes(use)}.__contains__)
    found = [rows[:0]]
    for first, last, _ in repeats(
        trace.name[rows], table.device[at].astype(np.int64) << 32 | table.stream[at]
    ):
        run = rows[first:last]
        if writes[trace.name[run]].any() and durations_us(trace, run).mean() <= _TINY_US:
            found.append(run)
    return np.sort(np.concatenate(found))


def _is_over_rows(facts: Facts, loop: Loop) -> bool:
    trace = facts.tree.trace
    names = {trace.name_of(op) for op in loop.ops[: loop.period].tolist()}
    before = {trace.name_of(op) for op in loop.before.tolist()}
    around = (trace.name_of(row) for row in facts.tree.ancestors(int(loop.ops[0])))
    indexes = bool(names & INDEXING) or bool(before & _ROWS_OF)
    return indexes and not names & MULTIPLYING and not any(name.startswith(_OPTIMIZER) for name in around)


def _with_activities(facts: Facts, loop: Loop, gpu: Int64, reads: Int64) -> RowLoop | None:
    """Add what the loop launched; None where that is too little, too long, a product, or of changing size."""
    tree, trace = facts.tree, facts.tree.trace
    gpu = gpu[np.argsort(trace.start_ns[tree.launch[gpu]], kind="stable")]
    reading = is_among(gpu, reads)
    rows, same_sizes = gpu[~reading], _same_sizes(facts, loop)
    if rows.size < loop.iterations or durations_us(trace, rows).mean() > _TINY_US or same_sizes is False:
        return None
    inside = np.unique(trace.name[tree.op[rows]])  # aten::gru_cell, say, hides its products
    if any(trace.names[name] in MULTIPLYING for name in inside.tolist()):
        return None
    return RowLoop(
        pattern=tuple(trace.name_of(op) for op in loop.ops[: loop.period].tolist()),
        iterations=loop.iterations,
        ops=loop.ops,
        rows=rows,
        reads=gpu[reading],
        of_one_pass=rows.size // loop.iterations,
        same_sizes=same_sizes is True,
    )


def _same_sizes(facts: Facts, loop: Loop) -> bool | None:
    """Tell whether an op of nearly all passes (that which indexes, if any) has operands of the same size.

    None where sizes were not recorded.
    """
    trace = facts.tree.trace
    columns = loop.whole()[:_LOOKED_AT].T
    indexing = [column for column in columns if trace.name_of(int(column[0])) in INDEXING]
    sizes = [[trace.args_of(op).get("Input Dims") for op in one.tolist()] for one in indexing or columns]
    if all(one[0] is None for one in sizes):
        return None
    return any(sum(size == one[0] for size in one) >= _NEARLY_ALL * len(one) for one in sizes)


def _goes_to_the_host(use: KernelUse) -> bool:
    return ("direction", "device to host") in use.identity.fields


def _only_writes(use: KernelUse) -> bool:
    copies = use.kind == "memcpy" and not _goes_to_the_host(use)
    return copies or is_copy_kernel(use.identity) or use.identity.algorithm == "fill"
