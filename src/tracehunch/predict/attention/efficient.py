"""The memory-efficient backend, CUTLASS kernels that came from xformers: kernels forward and backward.

One forward kernel. A mask becomes additive first, and is padded to rows of a multiple of 8 elements;
expanding it to all heads is a view.

The backward is one kernel. Before it: a copy of the gradient where that is not row-major as (batch, length,
heads, head_dim); in fp32 the sums of gradient times output, which 16-bit kernels compute themselves; zeros
for the workspace where the keys are split over blocks.

Source: kernel names of H200 traces and measurements with torch 2.11; the names' last part is the generation
that the code was written for, of 5.0, 7.0, 7.5 and 8.0 the newest that the GPU has.
"""

from dataclasses import replace
from typing import Final

from tracehunch.predict.activities import Activities, KernelGuess
from tracehunch.predict.attention import kernels
from tracehunch.predict.attention.fused import add_fused, dims_of
from tracehunch.predict.attention.masks import for_efficient, mask_gradient
from tracehunch.predict.attention.program import Program, UntoldError
from tracehunch.predict.attention.views import fresh, transposed
from tracehunch.predict.environment import Environment
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline.split import efficient_splits
from tracehunch.predict.roofline.steps import Step
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.tensor import TensorSpec

_FORWARD_OP: Final = "aten::_efficient_attention_forward"
_BACKWARD_OP: Final = "aten::_efficient_attention_backward"
_GENERATIONS: Final = ((8, 0), (7, 5), (7, 0), (5, 0))
_WORDS: Final = {"bf16": "bf16", "fp16": "f16", "fp32": "f32"}
_ANY: Final = 65_536
"""Largest head dimension of the kernel that takes all."""

_FP32: Final = 4
"""Bytes."""


def forward(program: Program, call: SdpaCall) -> TensorSpec:
    """Run the forward; return the output as (batch, heads, length, value_dim)."""
    if call.mask is not None:
        for_efficient(program, call.mask, call.q.dtype)
    q, v = call.q, call.v
    if q.shape[1] != call.k.shape[1]:
        why = "the efficient backend's kernels for grouped heads, new in torch 2.14, were not seen"
        program.note(Activities(confidence="low", reasons=(why,)))
    widest = max(q.shape[-1], v.shape[-1])
    if widest > _ANY:
        raise UntoldError(f"the efficient backend's kernels end at head dimension {_ANY:,}")
    in_registers = widest <= 128  # the widest tile of a result
    tile = "64x64" if widest <= 64 else "64x128" if in_registers else "32x128"
    program.empty(q.dtype, _FORWARD_OP)
    accumulates = not in_registers and q.dtype != "float32"
    program.empty("float32", _FORWARD_OP, times=call.requires_grad + accumulates)
    where = "rf" if in_registers else "gmem"
    found = _kernel("F", q.dtype, program.env, f"{tile}_{where}", _FORWARD_OP)
    add_fused(program, "efficient", call, found)
    batch, heads, queries, _ = q.shape
    return transposed(fresh((batch, queries, heads, v.shape[-1]), q.dtype), 1, 2)


def backward(program: Program, call: SdpaCall, gradient: TensorSpec) -> None:
    """Run the backward; `gradient` is the output's, (batch, heads, length, value_dim)."""
    q, v = call.q, call.v
    half = q.dtype != "float32"
    program.contiguous(transposed(gradient, 1, 2))
    program.empty(q.dtype, _BACKWARD_OP, times=3)
    if half:
        program.empty("float32", _BACKWARD_OP)
    else:
        _sums(program, q, v)
    widest = max(q.shape[-1], v.shape[-1])
    limit = next(size for size in (32, 64, 128, _ANY) if widest <= size)
    rows, columns = (64, 64) if limit <= 64 else (128, 128) if half and limit == 128 else (128, 64)
    program.empty("uint8", _BACKWARD_OP)
    if not program.strict and efficient_splits(dims_of(call), columns, accumulates=limit == _ANY) > 1:
        # the gradient of q is summed up in fp32
        sums = _FP32 * call.q.numel
        program.add(kernels.fill("uint8", "aten::zero_"), step=Step("fill", sums))
    variant = "_dropout" if call.dropout > 0 else ""
    if half and not variant and limit != _ANY and q.shape[-2] % rows == 0 and call.k.shape[-2] % columns == 0:
        variant = "_seqaligned"
    tile = f"{rows}x{columns}_k{limit}{variant}"
    found = _kernel("B", q.dtype, program.env, tile, _BACKWARD_OP)
    add_fused(program, "efficient", call, found, backward=True)
    if call.mask is not None and call.mask.requires_grad:
        mask_gradient(program, call.mask, (*q.shape[:-1], call.k.shape[-2]))


def _sums(program: Program, q: TensorSpec, v: TensorSpec) -> None:
    """Gradient times output, summed over the values, as (batch, heads, length)."""
    batch, heads, queries, _ = q.shape
    product = fresh((batch, queries, heads, v.shape[-1]), q.dtype)
    multiply = kernels.elementwise("MulFunctor", q.dtype, "aten::mul")
    program.pointwise(multiply, [product, product], "stream")
    sums = program.reduced(product, 3, "aten::sum")
    program.contiguous(transposed(replace(sums, shape=sums.shape[:3], stride=sums.stride[:3]), 1, 2))


def _kernel(direction: str, dtype: str, env: Environment, tile: str, op: str) -> KernelGuess:
    kind = dtype_word(dtype)
    of_gpu = env.compute_capability or _GENERATIONS[0]
    major, minor = next((one for one in _GENERATIONS if one <= of_gpu), _GENERATIONS[-1])
    old = (major, minor) < (8, 0) if kind == "fp32" else (major, minor) < (7, 0)
    hint = f"fmha_cutlass{direction}_{_WORDS[kind]}_aligned_{tile}_sm{major}{minor}"
    algorithm = "attention-forward" if direction == "F" else "attention-backward"
    return KernelGuess(hint, "mem-efficient", algorithm, "cuda-core" if old else "tensor-core", kind, op)
