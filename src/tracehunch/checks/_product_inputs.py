"""Matrix products on a GPU's general-purpose units, and what type their inputs have."""

from typing import Final

import numpy as np

from tracehunch.checks._ancestry import enclosing
from tracehunch.checks._matrix import identity_of, is_matrix_kernel
from tracehunch.checks._sdpa_inputs import HALF, sdpa_inputs
from tracehunch.checks._sdpa_math import MATH_OP, math_calls, upcasts
from tracehunch.facts.model import Facts, KernelUse
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.tree.keys import packed
from tracehunch.tree.names import ENGINE_PREFIX

_GENERAL_PURPOSE: Final = frozenset({"cuda-core", "vector"})
_HALF_NAMES: Final = frozenset({"bf16", "fp16", "16-bit"})
_UNSUITED: Final = ("depthwise", "grouped_direct", "c1_k1")
"""In names of convolutions with one channel a group: no matrix products, so matrix units cannot do them."""
HALF_INPUTS, SINGLE_INPUTS, OTHER_INPUTS, UNKNOWN_INPUTS = range(4)
"""Kinds of inputs: 16 bits, float32, any other, and those that neither types nor names tell."""


def on_general_purpose_cores(use: KernelUse) -> bool:
    """Tell matrix kernels that use no matrix units, but for convolutions that no such unit can do."""
    if any(word in use.name for word in _UNSUITED):
        return False
    return is_matrix_kernel(use) and use.identity.unit in _GENERAL_PURPOSE


def math_op_of(facts: Facts, rows: Int64) -> Int64:
    """For each activity the math fallback that it belongs to, directly or through autograd; NONE if none."""
    tree = facts.tree
    found = enclosing(tree, rows, MATH_OP.__eq__)
    nodes = enclosing(tree, rows, lambda name: name.startswith(ENGINE_PREFIX))
    forward = np.array([tree.backward_of.get(int(node), NONE) for node in nodes], dtype=np.int64)
    linked = (found == NONE) & (forward != NONE)
    if linked.any():
        found[linked] = enclosing(tree, forward[linked], MATH_OP.__eq__)
    return found


def inputs_of(facts: Facts, rows: Int64, math: Int64) -> Int64:
    """For each product the kind of its op's inputs, or of those of the fallback that it is in."""
    fallback = _by_casts(
        facts, {int(op): _fallback_inputs(facts, int(op)) for op in np.unique(math[math != NONE])}
    )
    found = _op_inputs(facts, rows)
    inside = np.flatnonzero(math != NONE)
    found[inside] = [fallback[op] for op in math[inside].tolist()]
    return found


def _fallback_inputs(facts: Facts, op: int) -> int:
    inputs = sdpa_inputs(facts.tree.trace, op)
    return UNKNOWN_INPUTS if inputs is None else HALF_INPUTS if inputs.half else OTHER_INPUTS


def _by_casts(facts: Facts, fallback: dict[int, int]) -> dict[int, int]:
    """Where types were not recorded: the fallback casts what it is given only if that has 16 bits."""
    if UNKNOWN_INPUTS not in fallback.values():
        return fallback
    cast = {int(op) for math in math_calls(facts) for op in upcasts(facts.tree, math).calls}
    return {
        op: known if known != UNKNOWN_INPUTS else HALF_INPUTS if op in cast else OTHER_INPUTS
        for op, known in fallback.items()
    }


def _op_inputs(facts: Facts, rows: Int64) -> Int64:
    """Tell the kinds by what ops were given, else by kernels' names; once for those that are alike."""
    trace, op = facts.tree.trace, facts.tree.op[rows].astype(np.int64)
    which, inputs = trace.inputs_of(op[op != NONE])
    given = np.full(op.size, NONE, dtype=np.int64)
    given[op != NONE] = which
    _, first, alike = np.unique(packed(given, trace.name[rows]), return_index=True, return_inverse=True)
    kinds = [
        _kind(facts, row, None if number == NONE else inputs[number].types)
        for row, number in zip(rows[first].tolist(), given[first].tolist(), strict=True)
    ]
    found: Int64 = np.array(kinds, dtype=np.int64)[alike.reshape(-1)]
    return found


def _kind(facts: Facts, row: int, types: object) -> int:
    tensors = (
        [str(entry) for entry in types[:3] if entry and not str(entry).startswith("Scalar")]
        if isinstance(types, list)
        else []
    )
    if tensors:
        if any(entry in HALF for entry in tensors):
            return HALF_INPUTS
        return SINGLE_INPUTS if set(tensors) == {"float"} else OTHER_INPUTS
    identity = identity_of(facts, row)
    if identity is None or identity.dtype is None:
        return UNKNOWN_INPUTS
    if identity.dtype in _HALF_NAMES:
        return HALF_INPUTS
    return SINGLE_INPUTS if identity.dtype == "fp32" else OTHER_INPUTS
