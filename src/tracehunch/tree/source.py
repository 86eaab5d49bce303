"""The user's own line of code around a row, where the trace was recorded with stacks."""

import re
import sys
from typing import Final

from tracehunch.tree.model import Tree
from tracehunch.tree.nesting import NONE

_FRAME: Final = re.compile(r"(?P<file>[^<(][^(]*)\((?P<line>\d+)\): (?P<function>.+)", re.DOTALL)
_LIBRARIES: Final = frozenset({"torch", "torchvision", "torchaudio", "triton"})
_STACK_KEY: Final = "Call stack"


def source_line(tree: Tree, row: int) -> str:
    """``file.py(12): function`` of the innermost frame around a row that is the user's; empty without.

    For a GPU row the frames around its launch count, for a row of the backward those around the forward op
    that it comes from.
    """
    launch = int(tree.launch[row])
    at = row if launch == NONE else launch
    node = next((above for above in (at, *tree.ancestors(at)) if above in tree.backward_of), NONE)
    found = "" if node == NONE else _users_line(tree, tree.backward_of[node])
    return found or _users_line(tree, at)


def _users_line(tree: Tree, row: int) -> str:
    around = [] if tree.frames is None else tree.frames.around(row)
    names = [tree.trace.name_of(frame) for frame in around]
    if not names and tree.op[row] != NONE:
        stack = tree.trace.args_of(int(tree.op[row])).get(_STACK_KEY)
        names = stack.split(";") if isinstance(stack, str) else []
    return next((name for name in names if is_users_frame(name)), "")


def is_users_frame(name: str) -> bool:
    """Whether a frame's file is neither PyTorch's nor Python's own."""
    frame = _FRAME.fullmatch(name)
    if frame is None:
        return False
    folders = frame["file"].replace("\\", "/").split("/")
    first = folders[0].removesuffix(".py")
    if folders[-1].startswith("<") or not _LIBRARIES.isdisjoint(folders[:-1]):
        return False
    standard = len(folders) <= 2 and first in sys.stdlib_module_names  # json/decoder.py
    return not standard and "lib/python" not in frame["file"]
