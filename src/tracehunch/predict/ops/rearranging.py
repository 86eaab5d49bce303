"""Operations that copy elements to other places in one kernel, after clearing what they do not reach.

Sources: PixelShuffle.cpp, TensorShape.cpp (`block_diag`) and Normalization.cpp (`renorm`) in ATen/native,
MaxUnpooling.cu and EmbeddingBag.cu in ATen/native/cuda.
"""

from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.reductions import reduction
from tracehunch.predict.ops.steps import (
    COPY,
    Call,
    Steps,
    copied,
    fresh,
    joined,
    kernel,
    like,
    pointwise,
    under,
)


def shuffled(call: Call) -> Steps:
    """View blocks of pixels or channels, turn them, and copy: one kernel."""
    one = call.first
    if one.numel == 0:
        return ()
    run = kernel(
        "direct_copy_kernel_cuda", "copy", "transposed", 2 * one.nbytes, dtype=one.dtype, items=one.numel
    )
    return under(COPY, run)


def unpooled(call: Call) -> Steps:
    """Clear the image, then put each value where it was the largest."""
    one, made = call.first, call.outputs[0]
    run = kernel("", "pooling", "scatter", 2 * one.nbytes, dtype=one.dtype, items=one.numel)
    return joined([fill_kernel(made), run])


def diagonal_blocks(call: Call) -> Steps:
    """Clear the whole, then copy each block into it."""
    whole = call.outputs[0]
    parts = []
    for one in call.tensors:
        rows, columns = (1, 1, *one.shape)[-2:]
        part = whole.narrowed(0, rows).narrowed(1, columns)
        seen = one.viewed((rows, columns))
        parts.append(copied(seen or fresh((rows, columns), one.dtype), part))
    return joined([fill_kernel(whole), *parts])


def diagonal_copied(call: Call) -> Steps:
    """Copy a diagonal to a tensor of its own."""
    made = call.outputs[0]
    moved = 2 * made.nbytes
    run = kernel("direct_copy_kernel_cuda", "copy", "strided", moved, dtype=made.dtype, items=made.numel)
    return under(COPY, run)


def renormalised(call: Call) -> Steps:
    """Take the norm of each slice, the factor that it asks for, and multiply."""
    one, dim = call.first, int(call.option("dim", 0)) % len(call.first.shape)
    others = tuple(at for at in range(len(one.shape)) if at != dim)
    norms = fresh((one.size(dim),), one.dtype)
    return joined(
        [
            under("aten::linalg_vector_norm", reduction(one, others, call.sms, flops=2)),
            pointwise("renorm_scale_factor_impl", norms, [norms]),
            under("aten::mul", pointwise("MulFunctor", like([one], one.dtype), [one, norms])),
        ]
    )  # fmt: skip


def bags(call: Call) -> Steps:
    """Add up, average or take the largest of the rows of each bag: one kernel."""
    weight, indices = call.first, call.at(1)
    if indices.numel == 0 or not call.outputs:
        return ()
    read = indices.numel * weight.size(-1) * weight.itemsize
    return kernel(
        "EmbeddingBag_updateOutputKernel", "gather", "gather_items", read + call.outputs[0].nbytes,
        dtype=weight.dtype, items=indices.numel * weight.size(-1),
    )  # fmt: skip
