"""What each call of a scope ran: generated kernels, and ops of libraries beside them."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.facts.activities import called_ops, is_library
from tracehunch.facts.compiled.merged import generated_among
from tracehunch.facts.compiled.names import Generated
from tracehunch.facts.compiled.op_words import plain_word
from tracehunch.facts.compiled.rows import annotated, is_region
from tracehunch.facts.compiled.units import host_kernels
from tracehunch.facts.compiler import innermost, is_autotuning, is_compiler
from tracehunch.trace.model import Cat, Int64
from tracehunch.tree import NONE, Call, Scope, Tree

_UNNAMED: Final = re.compile(r"triton_(?:_?\d{0,6})(?:_0d\w{0,200})?")


@dataclass(frozen=True, slots=True)
class Ran:
    """What one call ran. Kernels that the compiler tried, to choose among them, are left out."""

    kernels: dict[Generated, int]  # generated kernel -> the row of its first launch
    unnamed: bool  # there are generated kernels of which not even the kind is known
    others: int  # kernels that are not generated
    eager: dict[str, str]  # ops of libraries: plain word -> full name
    compiled: bool  # compiled regions ran

    def __bool__(self) -> bool:
        """Whether anything is known of it."""
        return bool(self.kernels or self.others or self.eager)


def ran_by_call(scope: Scope, tree: Tree) -> list[Ran]:
    """Collect what each call of a scope ran."""
    loops, regions = host_kernels(tree), annotated(tree, is_region)
    on_gpu = bool(tree.trace.gpu.row.size)
    found = []
    for call in scope.calls:
        rows = call.gpu[tree.trace.cat[call.gpu] == Cat.KERNEL] if on_gpu else _inside(call, loops, tree)
        compiled = bool(_inside(call, regions, tree).size)
        found.append(_ran(rows, None if on_gpu else call.ops, tree, compiled=compiled))
    return found


def _ran(rows: Int64, ops: Int64 | None, tree: Tree, *, compiled: bool) -> Ran:
    """Sort kernels (GPU rows or C++ loops); ``ops`` are those of a call without a GPU."""
    rows = rows[~is_autotuning(tree, rows)]
    kernels: dict[Generated, int] = {}
    others: list[int] = []
    for kernel, row in zip(generated_among(tree, rows), rows.tolist(), strict=True):
        if kernel is None:
            others.append(row)
        else:
            kernels.setdefault(kernel, row)
    launching = tree.op[others].astype(np.int64) if others else np.zeros(0, dtype=np.int64)
    return Ran(
        kernels=kernels,
        unnamed=any(_UNNAMED.fullmatch(tree.trace.name_of(row)) for row in others),
        others=len(others),
        eager=_library_ops(np.unique(launching[launching != NONE]) if ops is None else ops, tree),
        compiled=compiled,
    )


def _inside(call: Call, rows: Int64, tree: Tree) -> Int64:
    """Host rows that a call owns: on its thread, or autograd's, in its time."""
    if call.thread == NONE:
        return rows
    trace = tree.trace
    start = trace.start_ns[rows]
    mine = (trace.thread[rows] == call.thread) | tree.engine[rows]
    found: Int64 = rows[mine & (start >= call.start_ns) & (start < call.end_ns)]
    return found


def _library_ops(ops: Int64, tree: Tree) -> dict[str, str]:
    """Return the names of ops and of those that the program called for them, without the compiler's own."""
    ops = ops[innermost(tree, ops, is_compiler) == NONE]
    names = np.unique(tree.trace.name[np.concatenate([ops, called_ops(tree, ops)])])
    library = [name for name in (tree.trace.names[at] for at in names.tolist()) if is_library(name)]
    return {plain_word(name): name for name in library}
