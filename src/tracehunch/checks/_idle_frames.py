"""The Python frames that ran during a piece of idle time, where the trace was recorded with stacks."""

from typing import Final

import numpy as np

from tracehunch.checks._idle_pieces import Idle
from tracehunch.trace.model import Cat
from tracehunch.tree import Tree
from tracehunch.tree.source import is_users_frame
from tracehunch.units import printable

_MOST: Final = 0.8
_TORCHS: Final = ("nn.Module: ", "torch/", "torch\\")


def frame_during(tree: Tree, idle: Idle, piece: int) -> str:
    """``, at file.py(12): function (in <built-in function sleep>)`` to end a sentence with; empty without."""
    names = _frames(tree, idle, piece)
    users = next((name for name in names if is_users_frame(name)), "")
    if not users:
        return ""
    inner = f" (in {printable(names[0], 80)})" if names[0] != users else ""
    return f", at {printable(users, 200)}{inner}"


def is_in_pytorch(tree: Tree, idle: Idle, piece: int) -> bool:
    """Whether PyTorch's own Python code, or the start of autograd's engine, took the piece."""
    names = _frames(tree, idle, piece)
    return bool(names) and (names[0].startswith(_TORCHS) or " of torch." in names[0] or "/torch/" in names[0])


def _frames(tree: Tree, idle: Idle, piece: int) -> list[str]:
    """Frames that take most of a piece, innermost first."""
    trace = tree.trace
    start, end = int(idle.start_ns[piece]), int(idle.end_ns[piece])
    rows = np.flatnonzero((trace.cat == Cat.PYTHON_FUNCTION) & (trace.process == idle.process[piece]))
    overlap = np.minimum(trace.end_ns()[rows], end) - np.maximum(trace.start_ns[rows], start)
    rows = rows[overlap >= _MOST * (end - start)]
    inner_first = rows[np.lexsort((-rows, trace.dur_ns[rows]))]  # of two that are alike the inner comes later
    return [trace.name_of(int(row)) for row in inner_first]
