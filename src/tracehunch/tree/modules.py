"""Calls of ``nn.Module``, which the profiler records among the Python frames."""

from typing import Final

import numpy as np

from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64, Trace
from tracehunch.tree.names import MODULE_PREFIX, names_that
from tracehunch.tree.nesting import NONE, nest

_DEEPEST: Final = 32
"""Levels that a path shows; below, only the module's own name, which is unique in the process."""


def module_calls(trace: Trace) -> tuple[Int64, list[str]]:
    """Rows of module calls, and for each its module's path: the names of the modules around it and its own.

    ``Model_0/Block_3/Attention_3``: the profiler numbers the instances of a class in order of first call.
    """
    named = names_that(trace, lambda name: name.startswith(MODULE_PREFIX))
    if not named.any():
        return np.zeros(0, dtype=np.int64), []
    rows = np.flatnonzero((trace.cat == Cat.PYTHON_FUNCTION) & named[trace.name])
    rows = rows[(trace.start_ns[rows] != UNKNOWN_NS) & (trace.dur_ns[rows] != UNKNOWN_NS)]
    found = nest(trace.thread[rows], trace.start_ns[rows], trace.end_ns()[rows], np.zeros(rows.size))
    rows = rows[found.order]
    paths: list[str] = []
    depths: list[int] = []
    for name, parent in zip(trace.name[rows].tolist(), found.parent.tolist(), strict=True):
        own = trace.names[name].removeprefix(MODULE_PREFIX)
        depth = 0 if parent == NONE else depths[parent] + 1
        around = "" if parent == NONE else f"{paths[parent]}/" if depth < _DEEPEST else ".../"
        depths.append(depth)
        paths.append(f"{around}{own}")
    return rows, paths
