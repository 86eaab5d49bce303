"""The Python frames that ran during a piece of idle time, where the trace was recorded with stacks."""

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._idle_pieces import Idle
from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64
from tracehunch.tree import Tree
from tracehunch.tree.source import is_users_frame
from tracehunch.tree.timeline import expand
from tracehunch.units import printable

_MOST: Final = 0.8
_ADDRESS: Final = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")
_TORCHS: Final = ("nn.Module: ", "torch/", "torch\\")


def frame_during(tree: Tree, idle: Idle, piece: int) -> str:
    """``, at file.py(12): function (in <built-in function sleep>)`` to end a sentence with; empty without."""
    names = _frames(tree, idle, np.array([piece]))[0]
    users = next((name for name in names if is_users_frame(name)), "")
    if not users:
        return ""
    inner = f" (in {printable(_ADDRESS.sub('', names[0]), 80)})" if names[0] != users else ""
    return f", at {printable(users, 200)}{inner}"


def are_in_pytorch(tree: Tree, idle: Idle, pieces: Int64) -> NDArray[np.bool_]:
    """Tell which pieces PyTorch's own Python code, or the start of autograd's engine, took."""
    inner = [names[0] if names else "" for names in _frames(tree, idle, pieces)]
    own = [name.startswith(_TORCHS) or " of torch." in name or "/torch/" in name for name in inner]
    return np.array(own, dtype=bool)


def _frames(tree: Tree, idle: Idle, pieces: Int64) -> list[list[str]]:
    """For each piece the frames that take most of it, innermost first."""
    trace = tree.trace
    rows = trace.rows(Cat.PYTHON_FUNCTION)
    rows = rows[trace.start_ns[rows] != UNKNOWN_NS]
    begin, stop = idle.start_ns[pieces], idle.end_ns[pieces]
    middle = begin + (stop - begin) // 2  # what takes most of a piece runs in its middle
    order = np.argsort(middle, kind="stable")
    first = np.searchsorted(middle[order], trace.start_ns[rows] - 1)
    last = np.searchsorted(middle[order], trace.end_ns()[rows] + 1, "right")
    which, at = expand(first, np.maximum(first, last))
    frame, piece = rows[which], order[at]
    overlap = np.minimum(trace.end_ns()[frame], stop[piece]) - np.maximum(trace.start_ns[frame], begin[piece])
    most = (overlap >= _MOST * (stop - begin)[piece]) & (trace.process[frame] == idle.process[pieces[piece]])
    frame, piece = frame[most], piece[most]
    # of two frames that are alike the inner one comes later
    order = np.lexsort((-frame, trace.dur_ns[frame], piece))
    found: list[list[str]] = [[] for _ in pieces]
    for row, number in zip(frame[order].tolist(), piece[order].tolist(), strict=True):
        found[number].append(trace.name_of(row))
    return found
