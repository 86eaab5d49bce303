"""Why a scope shows nothing of torch.compile, and what would record it; or that nothing compiled ran."""

import re
from typing import Final

from tracehunch.facts.compiled.rows import FRAMES, annotated
from tracehunch.facts.compiled.together import how_to_record
from tracehunch.facts.model import Fact, ScopeFacts
from tracehunch.facts.vocabulary import KEYS
from tracehunch.tree import Tree

_LAST: Final = frozenset({"compiled.last_compile", "compiled.last_recompile"})
_STEPS: Final = "prof.step() after each step"
_OF_IDS: Final = frozenset({"compiled.recompiles", "compiled.last_recompile"})

_MARKED_FROM: Final = (2, 6)
"""The first PyTorch whose traces were seen to mark every compiled region (``Torch-Compiled Region``)."""


def none_compiled(key: str, tree: Tree) -> Fact | None:
    """Return that no compiled region ran, for a scope without ``compiled``; None if that cannot be told.

    It is told where it was claimed, and is no fact of every trace of code that nobody compiled.
    """
    found = re.match(r"(\d+)\.(\d+)", tree.trace.header.torch or "")
    if key != "compiled" or not tree.ops.size or found is None:
        return None
    marked = (int(found[1]), int(found[2])) >= _MARKED_FROM
    return Fact(key, 0, KEYS[key].unit) if marked else None


def why_not_compiled(key: str, scope: ScopeFacts, tree: Tree) -> tuple[str, str] | None:
    """Return why a scope lacks a fact about compiled code, and what would record it, else "".

    None for other facts.
    """
    if key.partition(".")[0] != "compiled":
        return None
    if not tree.ops.size:
        return "host ops were not recorded, by which compiled code is told", KEYS["compiled"].needs
    if key in _LAST and scope.scope.kind == "whole":
        return "the whole trace is one call: claim it of a step or an annotation", _STEPS
    if not scope.value("compiled"):
        return "no compiled region ran in it, as far as its version of PyTorch marks them", ""
    return _why_not_told(key, tree)


def _why_not_told(key: str, tree: Tree) -> tuple[str, str]:
    """Say why a scope in which compiled code ran does not show one of the facts."""
    if key in _OF_IDS and annotated(tree, FRAMES.__contains__).size:
        return "compilations were recorded without ids, so first ones and repeated ones look alike", ""
    if key == "compiled.graph_breaks":
        return _why_no_breaks(tree)
    if key == "compiled.kernels" and not tree.trace.gpu.row.size:
        return "the kernels of the compiled code were not recorded", how_to_record(tree)
    return f"this scope does not show it ({KEYS[key].meaning})", ""


def _why_no_breaks(tree: Tree) -> tuple[str, str]:
    reason = (
        "several compiled regions ran side by side: parts of one function, or functions compiled one by one"
    )
    if tree.trace.header.recorded.stacks:
        return f"{reason}; the recorded stacks do not show their calls", ""
    return reason, "with_stack=True"
