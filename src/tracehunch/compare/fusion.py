"""Which ops torch.compile merged into which of its kernels, as the kernels' names join the ops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tracehunch.facts.activities import is_library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Use

    Group = tuple[Sequence[Use], Sequence[Use]]

_ALSO: Final = {
    "softmax": ("amax", "exp", "prepare_softmax"),
    "log_softmax": ("amax", "exp", "log"),
    "cross_entropy_loss": ("nll_loss_forward",),
    "layer_norm": ("native_layer_norm", "var_mean"),
    "batch_norm": ("native_batch_norm", "_native_batch_norm_legit"),
    "group_norm": ("native_group_norm", "var_mean"),
    "rms_norm": ("_fused_rms_norm", "rsqrt"),
    "dropout": ("native_dropout", "bernoulli"),
    "masked_fill": ("where", "scalar_tensor"),
    "to": ("_to_copy",),
    "contiguous": ("clone",),
    "reshape": ("clone",),
    "expand": ("clone",),
    "scaled_dot_product_attention": ("amax", "exp"),
}
"""Op -> what Inductor's decompositions make of it, beside its own name."""


def fused_groups(before: Sequence[Use], after: Sequence[Use], *, reverse: bool) -> list[Group]:
    """Group ops of one side with the generated kernels of the other that name them.

    Without ``reverse`` the kernels are those after. Kernels that share an op, and ops that share a kernel,
    are one group: which part of an op's launches went into which kernel no name tells.
    """
    ops, kernels = (after, before) if reverse else (before, after)
    generated = [use for use in kernels if merged_ops(use) and not _is_tried(use)]
    plain = [use for use in ops if use.kind == "kernel" and not merged_ops(use) and _can_be_merged(use)]
    links = [(one, two) for one in plain for two in generated if names_op(two, one)]
    groups = [_sides(group, plain, generated) for group in _connected(links)]
    return [(second, first) if reverse else (first, second) for first, second in groups]


def merged_ops(use: Use) -> str:
    """Return the ops merged in a kernel of Inductor, as its name joins them; "" for any other."""
    if use.identity is None or use.identity.library != "inductor":
        return ""
    return dict(use.identity.fields).get("ops merged", "")


def _is_tried(use: Use) -> bool:
    """Whether torch.compile only measures it, to choose among candidates."""
    return any(op.startswith("CachingAutotuner.") for op in use.path)


def _can_be_merged(use: Use) -> bool:
    return use.identity is not None and use.identity.unit == "none"


def names_op(kernel: Use, use: Use) -> bool:
    """Whether a kernel's name holds an op that launched a use, or what it is decomposed into."""
    joined = merged_ops(kernel)
    return any(re.search(rf"(?:^|_){re.escape(word)}(?=_|$)", joined) for word in _words(use))


def _words(use: Use) -> set[str]:
    words: set[str] = set()
    for op in use.path:
        if is_library(op):
            name = op.rpartition("::")[2].strip("_")
            words |= {name, *(one.strip("_") for one in _ALSO.get(name, ()))}
    return words - {""}


def _connected(links: Sequence[tuple[Use, Use]]) -> list[set[int]]:
    groups: list[set[int]] = []
    for pair in links:
        ids = {id(use) for use in pair}
        touching = [group for group in groups if group & ids]
        groups = [group for group in groups if not group & ids]
        groups.append(ids.union(*touching))
    return groups


def _sides(group: set[int], first: Sequence[Use], second: Sequence[Use]) -> Group:
    return [use for use in first if id(use) in group], [use for use in second if id(use) in group]
