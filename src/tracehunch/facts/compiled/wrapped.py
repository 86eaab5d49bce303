"""Calls of compiled functions as recorded stacks show them: which regions belong to one call."""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Tree

_WRAPPER_FILE = "torch/_dynamo/eval_frame.py("
_WRAPPERS = (": compile_wrapper", ": _fn")  # torch 2.9 and later; before
_LIBRARIES = ("torch/", "<built-in ", "<string>", "contextlib.py(")


def by_wrapper(tree: Tree, outer: Int64) -> tuple[Int64, NDArray[np.bool_]]:
    """Return for each outermost region the breaks that the call around it tells, and whether that is known.

    Regions beyond the first of a call follow a break; so does an only one that is called by a function which
    runs in Python within the call of the compiled one.
    """
    more, known = np.zeros(outer.size, dtype=np.int64), np.zeros(outer.size, dtype=bool)
    if tree.frames is None or not tree.trace.header.recorded.stacks:
        return more, known
    calls: dict[int, list[int]] = defaultdict(list)
    between: dict[int, bool] = {}
    for at, row in enumerate(outer.tolist()):
        wrapper, in_python = _called_by(tree, row)
        if wrapper != NONE:
            known[at] = True
            calls[wrapper].append(at)
            between[wrapper] = in_python
    for wrapper, positions in calls.items():
        more[positions[1:]] = 1
        more[positions[0]] = int(len(positions) == 1 and between[wrapper])
    return more, known


def _called_by(tree: Tree, row: int) -> tuple[int, bool]:
    """Return the wrapper's frame around a region, and whether a function of the user stands between."""
    assert tree.frames is not None
    in_python = False
    for frame in tree.frames.around(row):
        name = tree.trace.name_of(frame)
        if _is_wrapper(name):
            return frame, in_python
        in_python = in_python or not _is_library(name)
    return NONE, False


def _is_wrapper(name: str) -> bool:
    return _WRAPPER_FILE in name and name.endswith(_WRAPPERS)


def _is_library(name: str) -> bool:
    return name.startswith(_LIBRARIES) or "/torch/" in name or name.startswith("nn.Module: ")
