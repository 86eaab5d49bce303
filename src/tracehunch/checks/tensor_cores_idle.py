"""tensor-cores-idle: 16-bit inputs were multiplied on the general-purpose cores.

## What it means
A matrix product or convolution whose inputs are float16 or bfloat16 ran a kernel for the GPU's
general-purpose units (CUDA cores, on AMD the vector units) instead of its matrix units (tensor cores,
MFMA). The kernel's name says which (`sgemm`, `simt`, `ffma`: general-purpose); the inputs' type comes from
the recorded types, from the kernel's name, or from the casts around it.

## Why it costs
For 16-bit types the matrix units do 10 to 16 times the arithmetic per second, and the inputs take half the
memory traffic of float32.

## How to confirm
`tracehunch explain "<kernel name>"` decodes the name. Record with `record_shapes=True` to see the types of
the op's inputs.

## How to fix
If the kernel belongs to the math fallback of `scaled_dot_product_attention`, the fallback cast the inputs
to float32 itself: get a fused kernel to run (see `sdpa-math-fallback`). Otherwise make dimensions multiples
of 8 (16-byte rows), use contiguous or transposed-contiguous operands, and for convolutions `channels_last`
and channel counts that are multiples of 8.

## When it is fine
Tiny products, where launching takes longer than computing; depthwise convolutions, which matrix units
cannot do (they are not counted). Products of float32 inputs are another matter and no finding here. A matrix
times a vector is bound by memory and is not counted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from tracehunch.checks._activities import launched
from tracehunch.checks._ancestry import called_op, enclosing
from tracehunch.checks._matrix import identity_of, is_matrix_kernel
from tracehunch.checks._peaks import peaks_of
from tracehunch.checks._scopes import Placement, place
from tracehunch.checks._sdpa_inputs import HALF, sdpa_inputs
from tracehunch.checks._sdpa_math import MATH_OP, math_calls, upcasts
from tracehunch.checks._weight import is_material, severity
from tracehunch.checks._words import at_source, is_amd
from tracehunch.facts.model import Facts, KernelUse, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.tree.names import ENGINE_PREFIX
from tracehunch.units import join, plural, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "tensor-cores-idle"
_GENERAL_PURPOSE: Final = frozenset({"cuda-core", "vector"})
_HALF_NAMES: Final = frozenset({"bf16", "fp16", "16-bit"})
_UNSUITED: Final = ("depthwise", "grouped_direct", "c1_k1")
"""In names of convolutions with one channel a group: no matrix products, so matrix units cannot do them."""
_OF_PEAK: Final = 4
"""Matrix units are assumed to reach a quarter of the advantage that their peak promises."""
_HALF_INPUTS, _OTHER, _UNKNOWN = range(3)


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """16-bit products on general-purpose cores, by scope and by whether the math fallback is to blame."""
    rows = launched(facts, _on_general_purpose_cores)
    if not rows.size:
        return
    where = place(facts)
    math = _math_op(facts, rows)
    inputs = _inputs(facts, rows, math)
    for scope, fallback, chosen in where.groups(
        rows[inputs == _HALF_INPUTS], math[inputs == _HALF_INPUTS] != NONE
    ):
        yield _finding(facts, where, scope, chosen, fallback=bool(fallback))
    for scope, chosen in where.by_scope(rows[inputs == _UNKNOWN]):
        if is_material(facts, scope, where.per_call_us(scope, chosen)):
            reason = (
                f"{time_us(where.per_call_us(scope, chosen))} of matrix products a call ran on "
                "general-purpose cores, but neither the types of their inputs were recorded nor do the "
                "kernels' names tell them"
            )
            yield CannotTell(ID, scope.scope.name, reason, "record_shapes=True")


def _on_general_purpose_cores(use: KernelUse) -> bool:
    if any(word in use.name for word in _UNSUITED):
        return False
    return is_matrix_kernel(use) and use.identity.unit in _GENERAL_PURPOSE


def _math_op(facts: Facts, rows: Int64) -> Int64:
    """For each activity the math fallback that it belongs to, directly or through autograd; NONE if none."""
    tree = facts.tree
    found = enclosing(tree, rows, MATH_OP.__eq__)
    nodes = enclosing(tree, rows, lambda name: name.startswith(ENGINE_PREFIX))
    forward = np.array([tree.backward_of.get(int(node), NONE) for node in nodes], dtype=np.int64)
    linked = (found == NONE) & (forward != NONE)
    if linked.any():
        found[linked] = enclosing(tree, forward[linked], MATH_OP.__eq__)
    return found


def _inputs(facts: Facts, rows: Int64, math: Int64) -> Int64:
    """For each activity whether the inputs of its op (or of the fallback that it is in) have 16 bits."""
    fallback = _by_casts(
        facts, {int(op): _fallback_inputs(facts, int(op)) for op in np.unique(math[math != NONE])}
    )
    return np.array(
        [
            fallback[int(op)] if op != NONE else _op_inputs(facts, int(row))
            for row, op in zip(rows, math, strict=True)
        ]
    )


def _fallback_inputs(facts: Facts, op: int) -> int:
    inputs = sdpa_inputs(facts.tree.trace, op)
    return _UNKNOWN if inputs is None else _HALF_INPUTS if inputs.half else _OTHER


def _by_casts(facts: Facts, fallback: dict[int, int]) -> dict[int, int]:
    """Where types were not recorded: the fallback casts what it is given only if that has 16 bits."""
    if _UNKNOWN not in fallback.values():
        return fallback
    cast = {int(op) for math in math_calls(facts) for op in upcasts(facts.tree, math).calls}
    return {
        op: known if known != _UNKNOWN else _HALF_INPUTS if op in cast else _OTHER
        for op, known in fallback.items()
    }


def _op_inputs(facts: Facts, row: int) -> int:
    trace = facts.tree.trace
    types = trace.args_of(int(facts.tree.op[row])).get("Input type") if facts.tree.op[row] != NONE else None
    tensors = (
        [str(entry) for entry in types[:3] if entry and entry != "Scalar"] if isinstance(types, list) else []
    )
    if tensors:
        return _HALF_INPUTS if any(entry in HALF for entry in tensors) else _OTHER
    identity = identity_of(facts, row)
    if identity is None or identity.dtype is None:
        return _UNKNOWN
    return _HALF_INPUTS if identity.dtype in _HALF_NAMES else _OTHER


def _finding(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64, *, fallback: bool) -> Finding:
    tree = facts.tree
    spent = where.per_call_us(scope, rows)
    ops = called_op(tree, rows)
    names = list(dict.fromkeys(tree.trace.name_of(int(op)) for op in ops if op != NONE))
    number = plural(round(len(rows) / len(scope.scope.calls), 1), "matrix kernel")
    saving = _saving(facts, spent)
    words = _Words.of(facts)
    advice = _advice(facts, rows, fallback=fallback, words=words)
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity=severity(facts, scope, rows, saving.us),
        confidence="high" if saving.known else "medium",
        time_at_stake_us=saving.us,
        summary=f"16-bit inputs, yet {number} a call of {join(names[:3]) or 'unknown ops'} ran on "
        f"{words.general} ({time_us(spent)}): {words.matrix} stayed idle{at_source(tree, int(rows[0]))}",
        cause=f"{advice.cause} {saving.how}",
        fix=advice.fix,
        evidence=tree.trace.events(rows),
        subject=", ".join(sorted(names)),
        per_call=round(len(rows) / len(scope.scope.calls), 1),
    )


@dataclass(frozen=True, slots=True)
class _Saving:
    us: float
    how: str
    known: bool


def _saving(facts: Facts, spent_us: float) -> _Saving:
    peaks = peaks_of(facts)
    if peaks is None:
        return _Saving(
            spent_us / 2,
            "At stake is half the time of these kernels, as the peaks of this GPU are not known.",
            known=False,
        )
    faster = max(1.0, peaks.half / peaks.single / _OF_PEAK)
    how = (
        f"At stake is their time less what matrix units need at {faster:.1f} times the speed, a quarter of "
        "what the peaks of both units promise."
    )
    return _Saving(spent_us * (1 - 1 / faster), how, known=True)


@dataclass(frozen=True, slots=True)
class _Words:
    matrix: str
    general: str

    @classmethod
    def of(cls, facts: Facts) -> Self:
        """Name the units as their vendor does."""
        return cls("MFMA units", "vector units") if is_amd(facts) else cls("tensor cores", "CUDA cores")


@dataclass(frozen=True, slots=True)
class _Advice:
    cause: str
    fix: str


def _advice(facts: Facts, rows: Int64, *, fallback: bool, words: _Words) -> _Advice:
    if fallback:
        return _Advice(
            "The math fallback of scaled_dot_product_attention casts 16-bit inputs to float32 and "
            "multiplies those: the fallback is to blame, not the matrix products.",
            "Get a fused SDPA backend to run (see sdpa-math-fallback); if the fallback has to stay, "
            "torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True) keeps its products in 16 bits.",
        )
    identity = identity_of(facts, int(rows[0]))
    if identity is not None and identity.algorithm == "conv":
        return _Advice(
            f"The convolution's kernel for this layout and these channel counts does not use {words.matrix}.",
            "model = model.to(memory_format=torch.channels_last) and the input likewise, with channel "
            "counts that are multiples of 8; a transposed convolution whose stride equals its kernel size "
            "can be a linear layer and a pixel shuffle.",
        )
    return _Advice(
        f"The library chose a kernel without {words.matrix} for these shapes or this alignment.",
        "Make rows, columns and the inner dimension multiples of 8, with operands that are contiguous (or "
        "transposes of contiguous ones) and aligned to 16 bytes.",
    )
