"""What the fast path of `nn.MultiheadAttention` has kernels of its own for.

Sources: `transform_bias_rescale_qkv_cuda` in ATen/native/transformers/cuda/attention.cu, and
`masked_softmax_cuda` in ATen/native/cuda/SoftMax.cu.
"""

from tracehunch.predict.ops.elementwise import masked_fill
from tracehunch.predict.ops.rows import softmax
from tracehunch.predict.ops.steps import Call, Steps, joined, kernel, like, under

_IN_WARP, _IN_WARP_BYTES = 1024, 4096
"""Longest row that one warp keeps in registers together with its mask."""
_FOR_ALL, _PADDING = 0, 1
"""Types of masks: one for all heads, to be expanded, and one row for all queries of a sequence."""


def rescaled(call: Call) -> Steps:
    """Add the bias, scale queries, and put heads before rows: one kernel."""
    qkv, bias = call.first, call.at(1)
    if qkv.numel == 0:
        return ()
    return kernel(
        "transform_bias_rescale_qkv_kernel", "elementwise", "strided", 2 * qkv.nbytes + bias.nbytes,
        flops=2 * qkv.numel, dtype=qkv.dtype, items=qkv.numel,
    )  # fmt: skip


def masked_softmax(call: Call) -> Steps:
    """Softmax where a mask lets it: one kernel for short rows, else the scores are filled before."""
    scores, mask = call.first, call.at(1)
    if scores.numel == 0:
        return ()
    length = scores.size(-1)
    last = call.option("dim", -1) % max(len(scores.shape), 1) == len(scores.shape) - 1
    kind = call.option("mask_type")
    if kind == _FOR_ALL:
        mask = mask.expanded(scores.shape)
    short = length <= _IN_WARP and length * scores.itemsize <= _IN_WARP_BYTES
    if short and last and mask.is_contiguous:
        moved = 2 * scores.nbytes + mask.nbytes
        return kernel(
            "softmax_warp_forward", "softmax", "softmax_warp", moved, flops=8 * scores.numel,
            dtype=scores.dtype, items=scores.numel, serial=length,
        )  # fmt: skip
    if kind == _PADDING:
        mask = mask.viewed((mask.size(0), 1, 1, mask.size(1))) or mask
    filled = masked_fill(Call("masked_fill", (scores, mask), {}, call.env))
    made = softmax(Call("_softmax", (like([scores], scores.dtype),), {"dim": -1}, call.env))
    return joined([filled, under("aten::_softmax", made)])
