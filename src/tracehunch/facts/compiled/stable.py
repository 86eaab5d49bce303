"""Which merged ops a trace vouches for: what a later trace of the same program should merge again."""

from typing import Final

from tracehunch.facts.compiled.names import generated
from tracehunch.facts.compiled.op_words import is_product
from tracehunch.facts.compiled.pieces import pieces
from tracehunch.facts.compiled.together import merged_together
from tracehunch.facts.model import ScopeFacts
from tracehunch.tree import Tree

_MOST: Final = 8
"""Kernels claimed of a scope at most: those with most of its GPU time."""

_VIEWS: Final = frozenset({
    "view", "view_as", "view_as_complex", "view_as_real", "unsafe_view", "reshape", "expand", "expand_as",
    "permute", "transpose", "t",
    "unsqueeze", "squeeze", "slice", "select", "alias", "detach", "as_strided", "split", "split_with_sizes",
    "unbind", "chunk", "clone", "lift_fresh_copy", "full", "scalar_tensor", "new_ones", "new_zeros", "empty",
})  # fmt: skip
"""Ops that compute nothing: how data is laid out may change where what is merged does not."""


def merged_sets(scope: ScopeFacts, tree: Tree) -> list[tuple[str, ...]]:
    """Return the ops of each generated kernel that merges several, as programs call them.

    Sets inside others are left out, and those that are not merged in every call.
    """
    joined = _by_time(scope) or _as_text(scope)
    sets = dict.fromkeys(ops for one in joined if len(ops := _named(one)) > 1)
    largest = [ops for ops in sets if not any(set(ops) < set(other) for other in sets)]
    return [ops for ops in largest[:_MOST] if merged_together(ops, scope.scope, tree).holds]


def _by_time(scope: ScopeFacts) -> list[str]:
    told = [
        generated(use.name) or generated(use.op)
        for use in scope.kernels
        if use.identity.library == "inductor"
    ]
    return [kernel.joined for kernel in told if kernel is not None and not kernel.cut]


def _as_text(scope: ScopeFacts) -> list[str]:
    """Return what was merged without a GPU, whose kernels would tell their time."""
    value = scope.value("fused")
    return [value] if isinstance(value, str) else list(value) if isinstance(value, tuple) else []


def _named(joined: str) -> tuple[str, ...]:
    words = dict.fromkeys(op.strip("_") for op in pieces(joined))
    return tuple(word for word in words if word not in _VIEWS and not is_product(word))
