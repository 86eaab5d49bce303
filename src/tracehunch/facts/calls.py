"""The op calls that put something on a GPU: what they were called with, and the work of each."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.facts.activities import Activities
from tracehunch.facts.work import Call, NotRecorded, Work, call_of, work_of
from tracehunch.trace.model import Cat, Int64, OpInputs, Trace
from tracehunch.tree import NONE
from tracehunch.tree.keys import numbered
from tracehunch.tree.names import names_that

NO_SHAPES: Final = "tensor shapes were not recorded"

_OPAQUE: Final = re.compile(r"\bOpaqueType<(\d{1,2})u?>")
"""What kernels that copy elements of any type have in its place: their size in bytes."""
_WIDEST: Final = 256  # bytes an element: more than any type has
_ATTENTION: Final = "scaled_dot_product"

Told = Work | str
"""The work of a call, or why it is not known."""


@dataclass(frozen=True, slots=True)
class OpCalls:
    """Calls of ops that launched GPU activities; many are alike in name and inputs."""

    row: Int64  # ascending
    of_activity: Int64  # GPU activity -> position in row; NONE where no op launched it
    inputs: Int64  # call -> what it was called with: position in given; NONE where no shapes were recorded
    given: tuple[OpInputs, ...]
    alike: Int64  # call -> position in works
    works: tuple[Told, ...]


def op_calls(trace: Trace, gpu: Activities) -> OpCalls:
    """Find the calls and their work; inputs and formulas are worked out once for calls that are alike."""
    launched = gpu.op != NONE
    calls = numbered(gpu.op[launched])
    row, of_activity = calls.keys, np.full(gpu.op.size, NONE, dtype=np.int64)
    of_activity[launched] = calls.number
    inputs, given = (
        _inputs_of(trace, row)
        if trace.header.recorded.shapes
        else (np.full(row.size, NONE, dtype=np.int64), ())
    )
    sizes = _sizes(gpu, of_activity, row.size)
    key = (trace.name[row].astype(np.int64) * (len(given) + 1) + inputs + 1) * _WIDEST + sizes
    distinct = numbered(key)
    works = tuple(
        _work(trace.name_of(int(row[at])), given[inputs[at]] if given else None, int(sizes[at]))
        for at in distinct.first.tolist()
    )
    return OpCalls(row, of_activity, inputs, given, distinct.number, works)


def _inputs_of(trace: Trace, row: Int64) -> tuple[Int64, tuple[OpInputs, ...]]:
    """Read the inputs, and along with them those of attention, which checks ask for: from the same pieces."""
    attention = names_that(trace, lambda name: _ATTENTION in name)
    ops = trace.rows(Cat.CPU_OP)
    trace.inputs_of(np.concatenate([row, ops[attention[trace.name[ops]]]]))
    return trace.inputs_of(row)


def _sizes(gpu: Activities, of_activity: Int64, n_calls: int) -> Int64:
    """Bytes an element as the name of a call's kernels has them; 0 where none does."""
    of_use = np.array([_element_bytes(use.name) for use in gpu.uses], dtype=np.int64)
    sizes = np.zeros(n_calls, dtype=np.int64)
    told = np.flatnonzero((of_use[gpu.use] > 0) & (of_activity != NONE)) if gpu.uses else of_activity[:0]
    sizes[of_activity[told]] = of_use[gpu.use[told]]
    return sizes


def _element_bytes(name: str) -> int:
    found = _OPAQUE.search(name)
    return 0 if found is None else int(found.group(1))


def _work(name: str, inputs: OpInputs | None, size: int) -> Told:
    if inputs is None:
        return NO_SHAPES
    call = call_of(name, inputs.dims, inputs.types, inputs.strides, inputs.values)
    try:
        return work_of(Call(call.name, call.inputs, call.values, size or None))
    except NotRecorded as lack:
        return str(lack)
