"""fp32-matmul: matrix products of float32 ran without tensor cores, because TF32 is off.

## What it means
The inputs of a matrix product are float32, and its kernel (`sgemm`, `simt`, `ffma` in its name) runs on the
GPU's general-purpose units (CUDA cores). That is PyTorch's default: `torch.get_float32_matmul_precision()`
is "highest", which keeps all 24 bits of each input. The type comes from the recorded types or, without them,
from the kernel's name.

## Why it costs
Tensor cores multiply float32 as TF32 (the range of float32, 11 bits of precision, sums in float32) 5 to 15
times as fast at their peak, and bfloat16 twice as fast again with half the memory traffic. On an H200 a
product of 2048 x 2048 took 353 us in float32, 49 us in TF32 and 27 us in bfloat16.

## How to confirm
`tracehunch explain "<kernel name>"` decodes the name. Record with `record_shapes=True` to see the types of
the op's inputs and sizes. `torch.get_float32_matmul_precision()` says "highest" where TF32 is off.

## How to fix
Once, before the work: `torch.set_float32_matmul_precision("high")`. For most training and inference the
results are as good; compare them. Or work in bfloat16: `torch.autocast("cuda", dtype=torch.bfloat16)`, in
inference `model.to(torch.bfloat16)`. GPUs before Ampere have no TF32: there use float16.

## When it is fine
Where float32's precision is needed: solvers, statistics, positions in rotary embeddings, references to
compare with. Tiny products take as long either way, and where the GPU waits for launches more than twice as
long as it works, faster ones would only have it wait longer (a note). Convolutions are a note: TF32 is on
for them unless `torch.backends.cudnn.allow_tf32 = False` was set, so that a kernel without it was rather the
library's choice. The float32 products of attention's math fallback belong to `sdpa-math-fallback`.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import launched
from tracehunch.checks._ancestry import called_op
from tracehunch.checks._convolved import layout_fix
from tracehunch.checks._peaks import gpu_of
from tracehunch.checks._product_inputs import (
    SINGLE_INPUTS,
    UNKNOWN_INPUTS,
    inputs_of,
    math_op_of,
    on_general_purpose_cores,
)
from tracehunch.checks._products import product_of
from tracehunch.checks._scopes import Placement, place
from tracehunch.checks._tf32_time import tf32_times_us
from tracehunch.checks._weight import is_material, is_noticeable, severity_of_slow
from tracehunch.checks._words import at_source, is_amd
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.hardware import Gpu
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.tree.names import names_that
from tracehunch.units import flop_rate, join, plural, time_range_us, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "fp32-matmul"
_SHOWN: Final = 3


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Products of float32 on general-purpose cores, by scope; convolutions apart."""
    rows = launched(facts, on_general_purpose_cores)
    if not rows.size:
        return
    math = math_op_of(facts, rows)
    rows, math = rows[math == NONE], math[math == NONE]
    inputs = inputs_of(facts, rows, math)
    where = place(facts)
    single = rows[inputs == SINGLE_INPUTS]
    for scope, conv, chosen in where.groups(single, _are_convolutions(facts, single)):
        yield from (_convolution if conv else _product)(facts, where, scope, chosen)
    for scope, chosen in where.by_scope(rows[inputs == UNKNOWN_INPUTS]):
        spent = where.per_call_us(scope, chosen)
        if is_material(facts, scope, spent):
            reason = (
                f"{time_us(spent)} of matrix products a call ran on general-purpose cores: neither recorded "
                "types nor the kernels' names tell whether they were float32"
            )
            yield CannotTell(ID, scope.scope.name, reason, "record_shapes=True")


def _are_convolutions(facts: Facts, rows: Int64) -> NDArray[np.bool_]:
    """Tell what TF32 is on for by default; without TF32 there is no difference."""
    gpu = gpu_of(facts)
    if is_amd(facts) or (gpu is not None and not _has_tf32(gpu)):
        return np.zeros(rows.size, dtype=bool)
    of_conv = names_that(facts.tree.trace, lambda name: "conv" in name)
    by_name = launched(facts, lambda use: use.identity.algorithm == "conv")
    op = called_op(facts.tree, rows)
    found: NDArray[np.bool_] = np.isin(rows, by_name) | ((op != NONE) & of_conv[facts.tree.trace.name[op]])
    return found


def _product(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterable[Finding]:
    tree, gpu, calls = facts.tree, gpu_of(facts), len(scope.scope.calls)
    spent = where.per_call_us(scope, rows)
    low, high = (float(times.sum()) / calls for times in tf32_times_us(facts, rows, gpu))
    saved = spent - high
    if not is_noticeable(facts, scope, saved):
        return
    number = round(rows.size / calls, 1)
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity=severity_of_slow(facts, scope, rows, saved) if gpu is None or _has_tf32(gpu) else "note",
        confidence="high" if _has_tf32(gpu) else "medium",
        time_at_stake_us=saved,
        summary=f"float32 products ran on {_cores(facts)}: {plural(number, 'kernel')}"
        f"{_of_ops(facts, rows)} a call, {time_us(spent)}{_expected(gpu, low, high)}"
        f"{at_source(tree, int(rows[0]))}",
        cause=_cause(facts, rows, gpu),
        fix=_fix(facts, gpu),
        evidence=tree.trace.events(rows),
        subject=_ops(facts, rows, shown=len(rows)),
        per_call=number,
    )


def _convolution(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterable[Finding]:
    spent, gpu = where.per_call_us(scope, rows), gpu_of(facts)
    high = float(tf32_times_us(facts, rows, gpu)[1].sum()) / len(scope.scope.calls)
    if not is_material(facts, scope, spent - high):
        return
    number = round(rows.size / len(scope.scope.calls), 1)
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="low",
        time_at_stake_us=spent - high,
        summary=f"float32 convolutions ran on {_cores(facts)}: {plural(number, 'kernel')} a call, "
        f"{time_us(spent)}{at_source(facts.tree, int(rows[0]))}",
        cause="TF32 is on for convolutions by default: either it was switched off, or the library has no "
        "kernel with it for these channels and this layout. At stake is half of their time.",
        fix="Leave torch.backends.cudnn.allow_tf32 on; use channel counts that are multiples of 4, or "
        f"torch.autocast. {layout_fix(facts, rows)}",
        evidence=facts.tree.trace.events(rows),
        subject=_ops(facts, rows, shown=len(rows)),
        per_call=number,
    )


def _cores(facts: Facts) -> str:
    return "vector units" if is_amd(facts) else "CUDA cores"


def _ops(facts: Facts, rows: Int64, shown: int = _SHOWN) -> str:
    """Names of the ops that the program called, those with most kernels first."""
    ops = called_op(facts.tree, rows)
    names, counts = np.unique(facts.tree.trace.name[ops[ops != NONE]], return_counts=True)
    ranked = [facts.tree.trace.names[int(names[at])] for at in np.argsort(-counts, kind="stable")]
    return join(ranked[:shown])


def _of_ops(facts: Facts, rows: Int64) -> str:
    names = _ops(facts, rows)
    return f" of {names}" if names else ""


def _has_tf32(gpu: Gpu | None) -> bool:
    return gpu is not None and gpu.vendor == "nvidia" and gpu.matrix_peak("tf32") is not None


def _expected(gpu: Gpu | None, low: float, high: float) -> str:
    if not _has_tf32(gpu):
        return ""
    return f", where TF32 is expected to take {time_range_us(low, high)}"


def _cause(facts: Facts, rows: Int64, gpu: Gpu | None) -> str:
    if is_amd(facts):
        return (
            "float32 products run at a fraction of the speed of 16-bit ones. At stake is half of their time."
        )
    if gpu is None:
        return (
            "TF32 is off, PyTorch's default. At stake is half of their time, as the peaks of this GPU are "
            "not known."
        )
    tf32, half = gpu.matrix_peak("tf32"), gpu.matrix_peak("bf16")
    if tf32 is None:
        rate = flop_rate(gpu.fp32_flops)
        return f"{gpu.name} has no TF32: float32 runs at {rate} at most. At stake is half of their time."
    more = f", in bfloat16 {flop_rate(half)}" if half is not None else ""
    recorded = any(product_of(facts.tree.trace, int(op)) is not None for op in facts.tree.op[rows[:_SHOWN]])
    basis = "the sizes" if recorded else "the kernels' times (no shapes were recorded)"
    return (
        f"TF32 is off, PyTorch's default: {gpu.name} multiplies float32 at {flop_rate(gpu.fp32_flops)} at "
        f"most, as TF32 at {flop_rate(tf32)}{more}. The expected time was estimated from {basis} and these "
        "peaks; at stake is what lies above its upper end."
    )


def _fix(facts: Facts, gpu: Gpu | None) -> str:
    if is_amd(facts) or (gpu is not None and not _has_tf32(gpu)):
        kind = "bfloat16" if is_amd(facts) else "float16"
        return f'Where the precision allows it, work in 16 bits: torch.autocast("cuda", dtype=torch.{kind}).'
    return (
        'torch.set_float32_matmul_precision("high"), once before the work (11 bits of precision in the '
        "inputs, sums in float32; compare results); or bfloat16, with torch.autocast."
    )
