"""sdpa-math-fallback: attention ran as a chain of ordinary ops.

## What it means
`scaled_dot_product_attention` has fused kernels (flash, memory-efficient, cuDNN) and one composition of
ordinary ops, the math backend, that takes any input. Here the math backend ran:
`aten::_scaled_dot_product_attention_math` is in the trace, with a kernel for every step where a fused
backend launches one.

## Why it costs
The scores (query length times key length, for every head) are written to memory and read back between the
steps, in float32 even for 16-bit inputs; the causal half that is masked is computed all the same; and the
matrix products of 16-bit inputs run in float32, usually without tensor cores. On an H200 the fallback was
measured 5 to 50 times slower for 16-bit inputs and 1.4 to 15 times slower for float32.

## How to confirm
`aten::_scaled_dot_product_attention_math` below `aten::scaled_dot_product_attention`. To hear PyTorch's
reason, run the call once under `torch.nn.attention.sdpa_kernel` with only the backend you want: it warns
why each one is not available.

## How to fix
Remove what keeps the fused kernels away: another pinned backend, float64, inputs that are not
4-dimensional, a last dimension that is not contiguous, grouped heads in float32 or with a head dimension
above 256, key heads that do not match without `enable_gqa=True`. The finding names those of them that the
recorded shapes show.

## When it is fine
As a reference to compare a kernel with, for double backward, or for inputs that no fused kernel takes. With
one query and few heads the fallback can be as fast.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from tracehunch.checks._ancestry import enclosing
from tracehunch.checks._fused_time import Estimate, from_matrix_time, from_matrix_time_alone, from_work
from tracehunch.checks._matrix import matrix_products, unit_of
from tracehunch.checks._peaks import Peaks, peaks_of
from tracehunch.checks._scopes import durations_us
from tracehunch.checks._sdpa_inputs import SdpaInputs, is_for_dropout, largest_inputs, obstacles, remedy
from tracehunch.checks._sdpa_math import MATH_OP, MathCalls, math_calls, times_us, upcasts
from tracehunch.checks._weight import on_average, severity
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts
from tracehunch.trace.model import Int64
from tracehunch.units import count, join, plural, printable, ratio, time_range_us, time_us
from tracehunch.verdict import Confidence, Finding

ID: Final = "sdpa-math-fallback"


def check(facts: Facts) -> Iterable[Finding]:
    """Report math fallbacks by scope, with what a fused kernel would need instead."""
    for math in math_calls(facts):
        yield _finding(facts, math)


def _finding(facts: Facts, math: MathCalls) -> Finding:
    tree, scope = facts.tree, math.scope
    inputs = largest_inputs(tree.trace, math.calls, on_gpu=math.on_gpu)
    times = times_us(tree, math)
    each_us = float(times.mean())
    estimate = _fused_time(facts, math, inputs)
    saved = float(np.maximum(times - estimate.high_us, 0).sum()) / len(scope.scope.calls)
    steps = plural(round(math.rows.size / math.calls.size, 1), "kernel" if math.on_gpu else "leaf op")
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note" if is_for_dropout(inputs) else severity(facts, scope, _timed(math), saved),
        confidence=_confidence(facts, inputs),
        time_at_stake_us=saved,
        summary=f"SDPA ran its math fallback: {steps} and {time_us(each_us)} an SDPA call"
        f"{on_average(times)}, {_slowdown(each_us, estimate)}{at_source(tree, int(math.rows[0]))}",
        cause=f"{_why(inputs)} A fused kernel is expected to need {_range(estimate)} an SDPA "
        f"call, estimated {estimate.how}; at stake is what lies above the upper end{_of_several(math)}.",
        fix=_fix(inputs),
        evidence=tree.trace.events(np.concatenate([math.calls, math.rows])),
        subject=MATH_OP,
        per_call=_per_call(math),
    )


def _per_call(math: MathCalls) -> float:
    """Return the SDPA calls in a call of their scope."""
    return round(math.calls.size / len(math.scope.scope.calls), 1)


def _of_several(math: MathCalls) -> str:
    """Say whose calls the time at stake is for, where those of SDPA are not as many."""
    number = _per_call(math)
    scope = math.scope.scope
    where = "the whole recording" if scope.kind == "whole" else f"a call of {printable(scope.name, 60)}"
    return "" if number == 1 else f", for the {plural(number, 'SDPA call')} of {where}"


def _timed(math: MathCalls) -> Int64:
    """Rows whose durations are the time of the fallback: its activities, on a CPU the ops themselves."""
    return math.rows if math.on_gpu else math.calls


def _range(estimate: Estimate) -> str:
    if not estimate.low_us:
        return f"at most {time_us(estimate.high_us)}"
    return time_range_us(estimate.low_us, estimate.high_us)


def _slowdown(each_us: float, estimate: Estimate) -> str:
    least = each_us / estimate.high_us if estimate.high_us else 0.0
    if least <= 1:
        return "about what a fused kernel would take"
    if not estimate.low_us:
        return f"at least {ratio(least)} a fused kernel's time"
    return f"about {ratio(least)} to {ratio(each_us / estimate.low_us)} a fused kernel's time"


def _fused_time(facts: Facts, math: MathCalls, inputs: SdpaInputs | None) -> Estimate:
    peaks = peaks_of(facts) if math.on_gpu else None
    matrix = _matrix_us(facts, math)
    if peaks is None:
        return from_matrix_time_alone(matrix)
    if inputs is not None:
        return from_work(
            inputs.flops,
            inputs.min_bytes,
            peaks.half if inputs.half else peaks.single,
            peaks.bytes_per_second,
        )
    half = upcasts(facts.tree, math).rows.size > 0
    causal = any(facts.tree.trace.name_of(int(part)) == "aten::tril" for part in math.parts)
    return from_matrix_time(
        matrix, _matrix_peak(facts, math, peaks), peaks.half if half else peaks.single, causal=causal
    )


def _matrix_us(facts: Facts, math: MathCalls) -> float:
    """Average the time of the matrix products over the SDPA calls."""
    return float(durations_us(facts.tree.trace, _products(facts, math)).sum()) / math.calls.size


def _products(facts: Facts, math: MathCalls) -> Int64:
    if math.on_gpu:
        return matrix_products(facts, math.rows)
    tree = facts.tree
    ops = matrix_products(facts, tree.ops)
    return ops[np.isin(enclosing(tree, ops, MATH_OP.__eq__), math.calls)]


def _matrix_peak(facts: Facts, math: MathCalls, peaks: Peaks) -> float:
    units = {unit_of(facts, int(row)) for row in _products(facts, math)[:8]}
    return peaks.single if units <= {"cuda-core", "vector"} else peaks.half


def _confidence(facts: Facts, inputs: SdpaInputs | None) -> Confidence:
    return "medium" if inputs is not None and inputs.half and peaks_of(facts) is not None else "low"


def _why(inputs: SdpaInputs | None) -> str:
    if inputs is None:
        return (
            "Why no fused kernel ran, the trace cannot tell: shapes were not recorded (record_shapes=True)."
        )
    found = obstacles(inputs)
    if found:
        return f"The recorded inputs keep fused kernels away: {join(found)}."
    return (
        f"Nothing in the recorded inputs {_described(inputs)} rules out every fused kernel, so the math "
        "backend was most likely pinned or the others switched off (sdpa_kernel, "
        "torch.backends.cuda.enable_flash_sdp and its like)."
    )


def _described(inputs: SdpaInputs) -> str:
    shape = " x ".join(count(size) for size in inputs.q)
    return f"(query {shape}, {inputs.types[0].removeprefix('c10::')})"


def _fix(inputs: SdpaInputs | None) -> str:
    if is_for_dropout(inputs):
        return (
            "Nothing to fix where training needs the dropout. In evaluation pass dropout_p=0.0 (model.eval() "
            "sets it for PyTorch's own modules): the fused kernel then runs by itself."
        )
    if inputs is not None and obstacles(inputs):
        return f"{remedy(inputs)} PyTorch then picks a fused kernel by itself. {_ASK}"
    return (
        "Leave the choice to PyTorch: call F.scaled_dot_product_attention outside any "
        "sdpa_kernel(SDPBackend.MATH), on 4-dimensional inputs whose last dimension is contiguous (on a GPU "
        f"in float16 or bfloat16). {_ASK}"
    )


_ASK: Final = (
    "To hear why PyTorch refuses a fused kernel: from torch.nn.attention import SDPBackend, sdpa_kernel; "
    "make the call inside with sdpa_kernel(SDPBackend.FLASH_ATTENTION): and read its warnings."
)
