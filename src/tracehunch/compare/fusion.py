"""Which ops torch.compile merged into which of its kernels, as the kernels' names join the ops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tracehunch.facts.activities import is_library
from tracehunch.facts.compiled.op_words import PARTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Use

    Group = tuple[Sequence[Use], Sequence[Use]]

_BACKWARD: Final = "autograd::engine::evaluate_function: "


def fused_groups(before: Sequence[Use], after: Sequence[Use], *, reverse: bool) -> list[Group]:
    """Group ops of one side with the generated kernels of the other that name them.

    Without ``reverse`` the kernels are those after. Kernels that share an op, and ops that share a kernel,
    are one group: which part of an op's launches went into which kernel no name tells.
    """
    ops, kernels = (after, before) if reverse else (before, after)
    generated = [use for use in kernels if merged_ops(use) and not is_tried(use)]
    plain = [use for use in ops if use.kind == "kernel" and not merged_ops(use) and _can_be_merged(use)]
    links = [(one, two) for one in plain for two in generated if names_op(two, one)]
    linked = {id(one) for one, _ in links}  # only what no name holds itself is looked for by its parts
    links += [
        (one, two) for one in plain if id(one) not in linked for two in generated if _may_name(two, one)
    ]
    groups = [_sides(group, plain, generated) for group in _connected(links)]
    return [(second, first) if reverse else (first, second) for first, second in groups]


def merged_ops(use: Use) -> str:
    """Return the ops merged in a kernel of Inductor, as its name joins them; "" for any other."""
    if use.identity is None or use.identity.library != "inductor":
        return ""
    return dict(use.identity.fields).get("ops merged", "")


def is_tried(use: Use) -> bool:
    """Whether torch.compile only measures it, to choose among candidates."""
    return any(op.startswith("CachingAutotuner.") for op in use.path)


def _can_be_merged(use: Use) -> bool:
    return use.identity is not None and use.identity.unit == "none"


def names_op(kernel: Use, use: Use) -> bool:
    """Whether a kernel's name holds an op that launched a use; a backward's kernel names a backward's ops."""
    joined = merged_ops(kernel)
    return is_backward(kernel) == is_backward(use) and any(_holds(joined, word) for word in _own_words(use))


def is_backward(use: Use) -> bool:
    """Whether autograd runs it."""
    return any(op.startswith(_BACKWARD) for op in use.path[:1]) or "CompiledFunctionBackward" in use.path


def _may_name(kernel: Use, use: Use) -> bool:
    """Whether a kernel's name holds what an op is decomposed into."""
    if is_backward(kernel) != is_backward(use):
        return False
    joined = merged_ops(kernel)
    alternatives = [words for op in _own_words(use) for words in PARTS.get(op, ())]
    return any(all(_holds(joined, word) for word in words) for words in alternatives)


def _holds(joined: str, word: str) -> bool:
    return re.search(rf"(?:^|_){re.escape(word)}(?=_|$)", joined) is not None


def _own_words(use: Use) -> set[str]:
    return {op.rpartition("::")[2].strip("_") for op in use.path if is_library(op)} - {""}


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
