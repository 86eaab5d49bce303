"""Graph breaks: where the code that torch.compile made for a function goes back to Python.

Dynamo compiles what stands before a break, and the rest as a function of its own, which the compiled code
calls (``torch_dynamo_resume_in_...``). So the run of a region with a break in it has in it

* the regions of the rest, one for each break with tensor work after it;
* in the call that compiles, the compilation of the rest, whatever is in it;
* PyTorch's ops beside the generated graphs: those that broke it (``.item()``), or what is not compiled;
* with ``with_stack=True``, the Python frames of the rest.

A frame that Dynamo gives up on as a whole (a break in a loop) has no region; those of the functions that it
calls then stand side by side, like those of functions that were compiled one by one. Only stacks tell which.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.facts.column import Column
from tracehunch.facts.compiled.compilations import region_id
from tracehunch.facts.compiled.rows import FRAMES, annotated, around, is_graph_call, is_region
from tracehunch.facts.compiled.units import library_calls
from tracehunch.facts.compiled.wrapped import by_wrapper
from tracehunch.facts.compiler import innermost, is_compiler
from tracehunch.facts.context import Context
from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64, Trace
from tracehunch.tree import NONE, Tree, work_of
from tracehunch.tree.names import names_that
from tracehunch.tree.timeline import Timeline

RESUMED: Final = ": torch_dynamo_resume_in_"
"""What the name of a Python frame holds that runs the rest of a function after a break."""

_READS: Final = frozenset({"aten::item", "aten::_local_scalar_dense"})
_COPIES: Final = frozenset({"aten::copy_", "aten::clone", "aten::to", "aten::_to_copy", "aten::contiguous"})
_WRAPPERS: Final = ("AOTDispatcher", "Pregraph bytecode", "TorchDynamo", "CompiledFunction")


def breaks_column(context: Context) -> list[Column]:
    """Count the breaks in the compiled functions that each call runs; known as said above."""
    tree = context.tree
    regions = annotated(tree, is_region)
    if not regions.size:
        return []
    above = around(tree, regions, is_region)
    outer, signs = regions[above == NONE], _signs(tree, regions[above != NONE])
    n_breaks = _of_code(tree, outer, _in_runs(tree, outer, signs))
    split, settled = by_wrapper(tree, outer)
    layout = context.ownership.layout(work_of(context.trace, outer, tree.engine))
    broken = layout.sums(n_breaks + split)[0]
    runs = layout.sums()[0]
    known = (broken > 0) | (runs == 1) | ((runs > 0) & (layout.sums(~settled)[0] == 0))
    rows = np.unique(np.concatenate([signs.rests, signs.compiled, signs.beside, signs.frames, outer]))
    evidence = context.work_rows(context.ownership.layout(work_of(context.trace, rows, tree.engine)), rows)
    return [Column("compiled.graph_breaks", broken, None, known, evidence)]


@dataclass(frozen=True, slots=True)
class _Signs:
    """What breaks leave inside compiled regions, as rows."""

    rests: Int64  # regions inside others
    compiled: Int64  # compilations inside regions
    beside: Int64  # ops outside of the generated graph
    frames: Int64  # Python frames of the rest of a function


def _signs(tree: Tree, rests: Int64) -> _Signs:
    trace = tree.trace
    compiled = annotated(tree, FRAMES.__contains__)
    compiled = compiled[around(tree, compiled, FRAMES.__contains__) == NONE]
    compiled = compiled[around(tree, compiled, is_region) != NONE]
    frames = np.flatnonzero((trace.cat == Cat.PYTHON_FUNCTION) & names_that(trace, _is_rest)[trace.name])
    return _Signs(rests, compiled, _ops_beside_graphs(tree), frames[trace.start_ns[frames] != UNKNOWN_NS])


def _of_code(tree: Tree, outer: Int64, n_breaks: Int64) -> Int64:
    """Return for each run the most breaks that any run of the same function shows, in any version."""
    code = [region_id(tree.trace.name_of(row))[0] for row in outer.tolist()]
    _, function = np.unique(
        [-2 - at if one == NONE else one for at, one in enumerate(code)], return_inverse=True
    )
    most = np.zeros(function.max(initial=-1) + 1, dtype=np.int64)
    np.maximum.at(most, function, n_breaks)
    told: Int64 = most[function]
    return told


def _in_runs(tree: Tree, outer: Int64, signs: _Signs) -> Int64:
    """Count the breaks that each outermost run shows: what shows most of them is right."""
    ways = [_counted(tree, outer, rows) for rows in (signs.rests, signs.compiled)]
    beside = np.minimum(_counted(tree, outer, signs.beside), 1)
    most: Int64 = np.maximum.reduce([*ways, beside, _resumed(tree.trace, outer, signs.frames)])
    return most


def _counted(tree: Tree, outer: Int64, rows: Int64) -> Int64:
    """How many of some rows are inside each outermost region."""
    found = np.zeros(outer.size, dtype=np.int64)
    inside = around(tree, rows, is_region)
    while (rising := inside != NONE).any():
        above = around(tree, inside[rising], is_region)
        top = inside[rising][above == NONE]
        np.add.at(found, np.searchsorted(outer, top), 1)
        inside = above[above != NONE]
    return found


def _ops_beside_graphs(tree: Tree) -> Int64:
    """Ops that work in a region, and outside of its graph; only of regions that run a generated graph."""
    gpu = tree.trace.gpu.row.astype(np.int64)
    working = tree.op[gpu[tree.launch[gpu] != NONE]].astype(np.int64) if gpu.size else library_calls(tree)
    ops = np.unique(np.concatenate([working[working != NONE], annotated(tree, _READS.__contains__)]))
    ops = ops[names_that(tree.trace, _is_eager)[tree.trace.name[ops]]]
    ops = ops[innermost(tree, ops, _is_other) == NONE]
    with_graph = np.unique(around(tree, annotated(tree, is_graph_call), is_region))
    found: Int64 = ops[np.isin(around(tree, ops, is_region), with_graph[with_graph != NONE])]
    return found


def _is_eager(name: str) -> bool:
    """Tell PyTorch's own ops; copies may be the wrapper's, which writes results back into inputs."""
    return name.startswith("aten::") and name not in _COPIES


def _is_other(name: str) -> bool:
    return is_graph_call(name) or is_compiler(name) or name.startswith(_WRAPPERS)


def _resumed(trace: Trace, outer: Int64, frames: Int64) -> Int64:
    """Count the Python frames in each outermost region."""
    timeline = Timeline(frames, trace.thread[frames].astype(np.int64), trace.start_ns[frames])
    threads = trace.thread[outer].astype(np.int64)
    first, last = timeline.slices(threads, trace.start_ns[outer], trace.end_ns()[outer])
    found: Int64 = last - first
    return found


def _is_rest(name: str) -> bool:
    return RESUMED in name
