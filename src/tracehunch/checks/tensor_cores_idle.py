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

from tracehunch.checks._activities import launched
from tracehunch.checks._ancestry import called_op
from tracehunch.checks._convolved import layout_fix
from tracehunch.checks._matrix import identity_of
from tracehunch.checks._peaks import peaks_of
from tracehunch.checks._product_inputs import (
    HALF_INPUTS,
    UNKNOWN_INPUTS,
    inputs_of,
    math_op_of,
    on_general_purpose_cores,
)
from tracehunch.checks._scopes import Placement, place
from tracehunch.checks._weight import is_material, severity, severity_of_slow
from tracehunch.checks._words import at_source, is_amd
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.units import join, plural, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "tensor-cores-idle"
_OF_PEAK: Final = 4
"""Matrix units are assumed to reach a quarter of the advantage that their peak promises."""


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """16-bit products on general-purpose cores, by scope and by whether the math fallback is to blame."""
    rows = launched(facts, on_general_purpose_cores)
    if not rows.size:
        return
    where = place(facts)
    math = math_op_of(facts, rows)
    inputs = inputs_of(facts, rows, math)
    for scope, fallback, chosen in where.groups(
        rows[inputs == HALF_INPUTS], math[inputs == HALF_INPUTS] != NONE
    ):
        yield _finding(facts, where, scope, chosen, fallback=bool(fallback))
    for scope, chosen in where.by_scope(rows[inputs == UNKNOWN_INPUTS]):
        if is_material(facts, scope, where.per_call_us(scope, chosen)):
            reason = (
                f"{time_us(where.per_call_us(scope, chosen))} of matrix products a call ran on "
                "general-purpose cores, but neither the types of their inputs were recorded nor do the "
                "kernels' names tell them"
            )
            yield CannotTell(ID, scope.scope.name, reason, "record_shapes=True")


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
        severity=(severity if fallback else severity_of_slow)(facts, scope, rows, saving.us),
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
            "Use channel counts that are multiples of 8; a transposed convolution whose stride equals its "
            f"kernel size can be a linear layer and a pixel shuffle. {layout_fix(facts, rows)}",
        )
    return _Advice(
        f"The library chose a kernel without {words.matrix} for these shapes or this alignment.",
        "Make rows, columns and the inner dimension multiples of 8, with operands that are contiguous (or "
        "transposes of contiguous ones) and aligned to 16 bytes.",
    )
