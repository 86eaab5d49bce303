"""The math backend: `scaled_dot_product_attention` composed of ordinary operations, forward and backward.

In the order of torch 2.5 and later: 16-bit inputs are computed in fp32; query and key are each scaled by the
square root of the scale; a causal mask is made anew by each call; the softmax is guarded against rows that
see no key, by looking for them in the whole score matrix. At (8, 16, 1024, 64) bf16 causal these are 20
kernels; at (2, 32, 4096, 128) they are 24, since four of the operations (adding the mask, finding -inf, the
guard's where, the cast back) reach across 4 GiB of fp32 scores and are launched in two pieces each.

Source: order and counts from H200 traces and measurements with torch 2.11.
"""

from typing import Final

from tracehunch.predict.attention import kernels
from tracehunch.predict.attention.masks import as_bias
from tracehunch.predict.attention.program import SCALAR, Program, swapped
from tracehunch.predict.attention.views import broadcast, expanded, fresh, viewed
from tracehunch.predict.roofline.steps import Step
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.tensor import TensorSpec

_HALF: Final = ("bfloat16", "float16")
_HEADS: Final = -3


def forward(program: Program, call: SdpaCall) -> TensorSpec:
    """Run the forward; return the output."""
    of_inputs = call.q.dtype
    mask = None if call.mask is None else as_bias(program, call.mask, of_inputs)
    q, k, v = _computed_in(program, call)
    q = program.scaled(q)
    if call.is_causal:
        mask = _causal_mask(program, q.shape[-2], k.shape[-2], q.dtype)
    if call.enable_gqa:
        k, v = _one_each(program, k, q), _one_each(program, v, q)
    scores = program.matmul(q, program.scaled(swapped(k)))
    if mask is not None:
        add = kernels.elementwise("CUDAFunctor_add", scores.dtype, "aten::add_")
        program.pointwise(add, [scores, expanded(mask, scores.shape)], "add", into=scores)
    boolean = call.mask is not None and call.mask.dtype == "bool"
    weights = _safe_softmax(program, scores, causal=call.is_causal, masked=boolean)
    if call.dropout > 0:
        weights = _dropout(program, weights)
    if of_inputs in _HALF:
        program.cast(weights, of_inputs)  # the weights are a second result, which nobody reads
    out = program.matmul(weights, v)
    return program.cast(out, of_inputs) if of_inputs in _HALF else out


def backward(program: Program, call: SdpaCall, gradient: TensorSpec) -> None:
    """Run the backward of a call whose inputs all require gradients; `gradient` is the output's."""
    of_inputs = call.q.dtype
    within = "float32" if of_inputs in _HALF else of_inputs
    if of_inputs in _HALF:
        gradient = program.cast(gradient, within)
    batch = _batch(call)
    q = fresh((*batch, *call.q.shape[-2:]), within)
    k = fresh((*batch, *call.k.shape[-2:]), within)
    v = fresh((*batch, *call.v.shape[-2:]), within)
    weights = fresh((*batch, q.shape[-2], k.shape[-2]), within)
    weights = product_backward(program, weights, v, gradient)
    if not call.enable_gqa:
        summed_to(program, v, call.v)
    if call.dropout > 0:
        program.empty(within, "aten::native_dropout_backward")
        scale = kernels.elementwise("masked_scale_kernel", None, "aten::native_dropout_backward")
        kept = fresh(weights.shape, "bool")
        weights = program.pointwise(scale, [weights, kept], "stream", dtype=within)
    scores = program.softmax_backward(weights)
    if call.mask is not None and call.mask.requires_grad:
        _mask_gradient(program, call.mask, scores)
    product_backward(program, q, swapped(k), scores)
    if not call.enable_gqa:
        summed_to(program, q, call.q)
        summed_to(program, turned(k), call.k)
    program.scaled(k)
    if call.enable_gqa:
        summed_to(program, v, call.v)
        summed_to(program, turned(k), call.k)
    program.scaled(q)
    if of_inputs in _HALF:
        for t in (call.v, call.k, call.q):
            program.cast(fresh(t.shape, within), of_inputs)


def _computed_in(program: Program, call: SdpaCall) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    if call.q.dtype not in _HALF:
        return call.q, call.k, call.v
    q, k, v = (program.cast(t, "float32") for t in (call.q, call.k, call.v))
    return q, k, v


def _batch(call: SdpaCall) -> tuple[int, ...]:
    of_keys = call.k.shape[:-2]
    if call.enable_gqa:
        of_keys = call.q.shape[:-2]
    return broadcast(call.q.shape[:-2], of_keys) or call.q.shape[:-2]


def _causal_mask(program: Program, queries: int, keys: int, dtype: str) -> TensorSpec:
    ones = program.filled((queries, keys), "bool", "aten::ones")
    program.add(kernels.triangle("aten::tril"), step=Step("triangle", 2 * ones.numel))
    return as_bias(program, ones, dtype)


def _one_each(program: Program, t: TensorSpec, q: TensorSpec) -> TensorSpec:
    """Give every query head a key or value head of its own."""
    heads, mine = q.shape[_HEADS], t.shape[_HEADS]
    return t if heads == mine else program.repeated(t, heads // mine, t.ndim + _HEADS)


def _safe_softmax(program: Program, scores: TensorSpec, *, causal: bool, masked: bool) -> TensorSpec:
    """Softmax, and zeros for the rows in which all scores are -inf."""
    result = program.softmax(scores, causal=causal, masked=masked)
    found = kernels.elementwise("isneginf_kernel_impl", None, "aten::isneginf")
    hidden = program.pointwise(found, [scores], "flag", dtype="bool")
    rows = program.reduced(hidden, scores.ndim - 1, "aten::all")
    zero = program.filled(SCALAR, scores.dtype, "aten::scalar_tensor")
    choose = kernels.elementwise("where_kernel_impl", None, "aten::where")
    operands = [expanded(rows, scores.shape), expanded(zero, scores.shape), result]
    return program.pointwise(choose, operands, "select", dtype=scores.dtype)


def _dropout(program: Program, weights: TensorSpec) -> TensorSpec:
    op = "aten::native_dropout"
    program.empty("bool", op)
    program.empty(weights.dtype, op)
    size = weights.numel * weights.item_bytes
    step = Step("dropout", 2 * size + weights.numel)
    program.add(kernels.dropout(weights.dtype, op), step=step, flops=weights.numel)
    return weights


def _mask_gradient(program: Program, mask: TensorSpec, scores: TensorSpec) -> None:
    """Sum the gradient of the scores to the mask's shape, in its data type."""
    if mask.numel != scores.numel:
        program.summed(scores, mask.numel)
    if mask.dtype != scores.dtype:
        program.cast(fresh(mask.shape, scores.dtype), mask.dtype)


def product_backward(
    program: Program, first: TensorSpec, second: TensorSpec, gradient: TensorSpec
) -> TensorSpec:
    """Gradients of a batched product: of its second factor, then of its first, which is returned."""
    merged = (fresh(first.shape[:-2], "bool").numel,)

    def flat(t: TensorSpec) -> TensorSpec:
        return viewed(t, merged + t.shape[-2:]) or fresh(merged + t.shape[-2:], t.dtype)

    incoming = program.reshaped(gradient, merged + gradient.shape[-2:])
    a, b = flat(first), viewed(second, merged + second.shape[-2:]) or flat(fresh(second.shape, second.dtype))
    program.bmm(swapped(a), incoming)
    program.bmm(incoming, swapped(b))
    return fresh(first.shape, first.dtype)


def turned(t: TensorSpec) -> TensorSpec:
    """Return a gradient of keys as the product leaves it: its memory holds the transpose."""
    return swapped(fresh(swapped(t).shape, t.dtype))


def summed_to(program: Program, gradient: TensorSpec, t: TensorSpec) -> None:
    """Sum the gradient over the heads, or the batch, that a tensor was repeated or expanded to."""
    for at, (mine, all_of_them) in enumerate(zip(t.shape[:-2], gradient.shape[:-2], strict=False)):
        if mine != all_of_them:
            program.reduced(gradient, at, "aten::sum")
            return
