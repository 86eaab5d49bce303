"""Attention as the formula writes it, without SDPA: softmax(q k^T * scale, masked) v, forward and backward.

The mask is a boolean tensor that was made before and is filled in: `masked_fill` clones the scores first (one
memcpy), `masked_fill_` does not. Grouped heads first repeat keys and values. Dropout is no part of it.
"""

from tracehunch.predict.attention import kernels
from tracehunch.predict.attention.composed import product_backward, summed_to, turned
from tracehunch.predict.attention.program import Program, UntoldError, swapped
from tracehunch.predict.attention.views import broadcast, expanded, fresh
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.tensor import TensorSpec

_HEADS = -3
_MATRIX = -2


def forward(program: Program, call: SdpaCall, *, in_place: bool) -> TensorSpec:
    """Run the forward; return the output."""
    groups = heads_per_key(call)
    k, v = call.k, call.v
    if groups > 1:
        with program.calling("aten::repeat_interleave"):
            k = program.repeated(k, groups, k.ndim + _HEADS)
            v = program.repeated(v, groups, v.ndim + _HEADS)
    with program.calling("aten::matmul"):
        scores = program.matmul(call.q, swapped(k))
    with program.calling("aten::mul"):
        scores = program.scaled(scores)
    mask = _mask(call)
    if mask is not None and mask.dtype != "bool":
        with program.calling("aten::add"):
            add = kernels.elementwise("CUDAFunctor_add", scores.dtype, "aten::add")
            scores = program.pointwise(add, [scores, expanded(mask, scores.shape)], "add", dtype=scores.dtype)
    elif mask is not None:
        scores = _filled(program, scores, mask, "aten::masked_fill_" if in_place else "aten::masked_fill")
    with program.calling("aten::softmax"):
        weights = program.softmax(scores, causal=call.is_causal, masked=_is_boolean(call))
    with program.calling("aten::matmul"):
        return program.matmul(weights, v)


def backward(program: Program, call: SdpaCall, gradient: TensorSpec) -> None:
    """Run the backward of a call whose inputs all require gradients; `gradient` is the output's.

    The gradient of a boolean mask's filling is filled too, out of place in both variants.
    """
    q, k, v = call.inputs
    batch = q.shape[:-2]
    weights = fresh((*batch, q.shape[-2], k.shape[-2]), q.dtype)
    values = fresh((*batch, *v.shape[-2:]), v.dtype)
    scores = program.softmax_backward(product_backward(program, weights, values, gradient))
    mask = _mask(call)
    if mask is not None and mask.dtype == "bool":
        scores = _filled(program, scores, mask, "aten::masked_fill")
    scores = program.scaled(scores)
    keys = fresh((*batch, *k.shape[-2:]), k.dtype)
    product_backward(program, fresh(q.shape, q.dtype), swapped(keys), scores)
    summed_to(program, values, v)
    summed_to(program, turned(keys), k)


def heads_per_key(call: SdpaCall) -> int:
    """Return how many query heads share a key head, 1 where the numbers do not divide."""
    if call.q.ndim <= -_HEADS:
        return 1
    heads, shared = call.q.shape[_HEADS], call.k.shape[_HEADS]
    return heads // shared if shared and heads % shared == 0 else 1


def mask_error(call: SdpaCall, *, in_place: bool) -> str:
    """Return the error that a mask of the wrong shape ends in, "" for none.

    Raises:
        UntoldError: the mask makes more scores of them than there were.

    """
    if call.mask is None:
        return ""
    batch = broadcast(call.q.shape[:_MATRIX], call.k.shape[:_MATRIX]) or call.q.shape[:_MATRIX]
    scores, mask = (*batch, call.q.shape[-2], call.k.shape[-2]), call.mask.shape
    whole = broadcast(scores, mask)
    if whole == scores:
        return ""
    if whole is None:
        pairs = zip(reversed(scores), reversed(mask), strict=False)
        at, one, other = next(
            (at, one, other)
            for at, (one, other) in enumerate(pairs)
            if one != other and 1 not in (one, other)
        )
        dim = max(len(scores), len(mask)) - 1 - at
        if not in_place and _is_boolean(call):  # masked_fill names the mask first
            one, other = other, one
        return (
            f"The size of tensor a ({one}) must match the size of tensor b ({other}) "
            f"at non-singleton dimension {dim}"
        )
    if in_place and _is_boolean(call):
        return f"output with shape {list(scores)} doesn't match the broadcast shape {list(whole)}"
    raise UntoldError(f"a mask of shape {mask} is larger than the scores")


def _is_boolean(call: SdpaCall) -> bool:
    return call.mask is not None and call.mask.dtype == "bool"


def _mask(call: SdpaCall) -> TensorSpec | None:
    if call.mask is not None:
        return call.mask
    return fresh((call.q.shape[-2], call.k.shape[-2]), "bool") if call.is_causal else None


def _filled(program: Program, scores: TensorSpec, mask: TensorSpec, op: str) -> TensorSpec:
    """Write -inf where the mask says, out of place into a copy."""
    with program.calling(op):
        if not op.endswith("_"):
            scores = program.clone(scores)
        fill = kernels.elementwise("masked_fill_kernel", None, op)
        return program.pointwise(fill, [scores, expanded(mask, scores.shape)], "mask", into=scores)
