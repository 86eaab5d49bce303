"""Casts between floating-point types, among the work of a program in the order in which it was launched."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import gpu_positions, leaf_ops, on_cpu_alone, on_gpu, uses
from tracehunch.checks._ancestry import annotation_around
from tracehunch.checks._copy_fixes import COPY_OP
from tracehunch.facts.model import Facts, KernelUse
from tracehunch.trace.model import UNKNOWN_NS, Int64, OpInputs, Trace
from tracehunch.tree import NONE, Link, Tree
from tracehunch.tree.names import names_that

FLOATS: Final = {
    "double": "fp64",
    "float": "fp32",
    "c10::Half": "fp16",
    "c10::BFloat16": "bf16",
}
"""Types between which a cast can be an accident; casts to 8 bits and to integers are quantisation."""
BITS: Final = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16}
LISTED: Final = "TensorList"

_MAKES_TENSORS: Final = """
    empty empty_strided empty_like as_strided view _unsafe_view reshape _reshape_alias expand t transpose
    permute detach alias select slice narrow unsqueeze squeeze unbind split resize_ set_ to
    lift_fresh result_type resolve_conj resolve_neg
"""
_NO_WORK: Final = frozenset(f"aten::{name}" for name in _MAKES_TENSORS.split())
"""Leaf ops that only make or look at tensors, on a CPU, where nothing else tells them from work."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that an op was given: its type as recorded and its number of elements."""

    dtype: str
    elements: int


@dataclass(frozen=True, slots=True)
class Cast:
    """A copy from one floating-point type to another.

    ``source`` is None and ``elements`` 0 where shapes were not recorded; ``threads`` are those of its kernel,
    0 on a CPU.
    """

    at: int  # index into Work
    row: int
    op: int
    source: str | None
    target: str
    elements: int
    threads: int


@dataclass(frozen=True, slots=True)
class Work:
    """GPU activities by launching thread and time of launch; in a trace of a CPU, ops that do something."""

    row: Int64
    op: Int64  # innermost op of each
    host: Int64  # what launched each; on a CPU itself

    def __len__(self) -> int:
        return self.row.size


def work_of(facts: Facts) -> Work:
    """Order what ops of the program did; what no op launched is left out."""
    tree = facts.tree
    trace = tree.trace
    if on_gpu(facts):
        rows = trace.gpu.row.astype(np.int64)
        rows = rows[(tree.link[rows] == Link.LINKED) & (tree.op[rows] != NONE)]
        host = tree.launch[rows].astype(np.int64)
    elif on_cpu_alone(facts):
        rows = host = leaf_ops(facts, lambda name: name not in _NO_WORK)
    else:
        rows = host = np.empty(0, dtype=np.int64)
    known = trace.start_ns[host] != UNKNOWN_NS
    rows, host = rows[known], host[known]
    order = np.lexsort((trace.start_ns[host], trace.thread[host]))
    rows, host = rows[order], host[order]
    return Work(rows, tree.op[rows].astype(np.int64), host)


def runs(tree: Tree, work: Work) -> Int64:
    """Return for each entry one number for its thread inside its outermost annotation or step."""
    threads = int(tree.trace.thread.max(initial=0)) + 1
    return annotation_around(tree, work.host, outermost=True) * threads + tree.trace.thread[work.host]


def casts_of(facts: Facts, work: Work) -> list[Cast]:
    """Find casts between floating-point types; where shapes were recorded both types are known."""
    trace = facts.tree.trace
    targets = targets_by_name(facts)
    chosen = np.flatnonzero(_may_cast(facts, work, targets))
    rows, ops = work.row[chosen], work.op[chosen]
    given = Operands(trace, ops)
    columns = (chosen, rows, ops, _threads(facts, rows))
    found = []
    for number, (at, row, op, count) in enumerate(zip(*(one.tolist() for one in columns), strict=True)):
        types = _types(given.of(number), targets.get(trace.name_of(row)))
        if types is not None:
            found.append(Cast(at, row, op, *types, count))
    return found


class Operands:
    """The tensors that ops were given, read for all of them at once."""

    def __init__(self, trace: Trace, ops: Int64) -> None:
        code, self._inputs = trace.inputs_of(ops)
        self._code = code.tolist()
        self._known: dict[int, tuple[Operand, ...]] = {}

    def of(self, number: int) -> tuple[Operand, ...]:
        """Return those of one op, with type ``TensorList`` for tensors in lists.

        Empty where shapes were not recorded.
        """
        code = self._code[number]
        if code not in self._known:
            self._known[code] = _operands(self._inputs[code])
        return self._known[code]


def _operands(inputs: OpInputs) -> tuple[Operand, ...]:
    types, dims = inputs.types, inputs.dims
    if not isinstance(types, list) or not isinstance(dims, list):
        return ()
    found: list[Operand] = []
    for dtype, sizes in zip(types, dims, strict=False):
        if dtype == LISTED and isinstance(sizes, list):
            found += [Operand(LISTED, _count(one)) for one in sizes]
        elif dtype not in ("", "Scalar", "ScalarList"):
            found.append(Operand(str(dtype), _count(sizes)))
    return tuple(found)


def _count(sizes: Any) -> int:
    known = isinstance(sizes, list) and all(isinstance(size, int) for size in sizes)
    return math.prod(sizes) if known else 0


def _types(given: tuple[Operand, ...], by_name: str | None) -> tuple[str | None, str, int] | None:
    """Source, target and elements of the copy that an op makes; None where it is no cast between floats."""
    if len(given) < 2:
        return None if by_name is None else (None, by_name, 0)
    target, source = FLOATS.get(given[0].dtype), FLOATS.get(given[1].dtype)
    if target is None or source is None or target == source or given[0].elements != given[1].elements:
        return None
    return source, target, given[0].elements


def _may_cast(facts: Facts, work: Work, targets: Mapping[str, str | None]) -> NDArray[np.bool_]:
    """Tell the copies that may cast: on a GPU by the kernel's name, on a CPU by the op."""
    trace = facts.tree.trace
    copies: NDArray[np.bool_] = names_that(trace, COPY_OP.__eq__)[trace.name[work.op]]
    if not on_gpu(facts):
        return copies
    kernels: NDArray[np.bool_] = names_that(trace, targets.__contains__)[trace.name[work.row]]
    return copies & kernels


def targets_by_name(facts: Facts) -> dict[str, str | None]:
    """For each copy kernel of the trace the floating-point type that it casts to, None if it says none."""
    kernels = (use for use in uses(facts) if use.kind == "kernel" and use.identity.algorithm == "copy")
    return {use.name: use.identity.dtype if _says_cast(use) else None for use in kernels}


def _says_cast(use: KernelUse) -> bool:
    converts = any(label.startswith("converts") for label, _ in use.identity.fields)
    return converts and use.identity.dtype in BITS


def _threads(facts: Facts, rows: Int64) -> Int64:
    """Threads of each kernel, 0 where not recorded."""
    if not on_gpu(facts):
        return np.zeros(rows.size, dtype=np.int64)
    table, at = facts.tree.trace.gpu, gpu_positions(facts, rows)
    threads: Int64 = np.maximum(table.grid[at].prod(axis=1) * table.block[at].prod(axis=1), 0)
    return threads
