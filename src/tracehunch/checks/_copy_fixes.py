"""What makes an op copy, and what to write instead."""

from typing import Final, NamedTuple


class Remedy(NamedTuple):
    """Why an op copies (a clause after its name) and what to do about it; ``sure``: both are known."""

    cause: str
    fix: str
    sure: bool = True


_COPYING: Final = """
    clone contiguous to _to_copy copy_ copy _copy_from _foreach_copy_ cat concat stack hstack vstack
    block_diag pad constant_pad_nd repeat repeat_interleave tile roll flip rot90 type_as lift_fresh
    detach_copy slice_scatter select_scatter pin_memory _pin_memory
"""
INDEX_OP: Final = "aten::index"
EXPLICIT: Final = frozenset(f"aten::{name}" for name in _COPYING.split()) | {INDEX_OP}
"""Ops whose whole purpose is to copy, cast or lay out: the program asked for these copies."""

ON_REQUEST: Final = {
    "aten::clone": "drop the clone where nothing writes to either tensor afterwards",
    "aten::contiguous": "let the consumer take the strided tensor, or produce it in this layout in the first "
    "place",
    "aten::to": "keep the tensor in one dtype between ops, so that no cast is needed",
    "aten::copy_": "write the result where it is wanted (out=, or into a view) instead of copying it there",
    "aten::cat": "allocate the result once and write the parts into slices of it",
    "aten::stack": "allocate the result once and write the parts into it",
    "aten::index": "index with slices, which are views, where the picked elements form a range; or pick them "
    "once and reuse the result",
    "aten::repeat": "use expand(), which copies nothing, where the consumer accepts strides of 0",
    "aten::repeat_interleave": "use expand() where that will do; for grouped heads enable_gqa=True",
}
"""How to avoid a copy that the program asked for, by op."""

_LAYOUT: Final = Remedy(
    "has to copy, because the tensor's strides (transposed or expanded) cannot be viewed in the new shape",
    "Reshape before the transpose or expand, keep the tensor's layout contiguous for the consumer, or use a "
    "consumer that takes strided input; for repeated key and value heads pass enable_gqa=True to "
    "scaled_dot_product_attention instead of expanding them.",
)
_LINEAR: Final = Remedy(
    "copies its input, whose leading dimensions (transposed, as batch and sequence) do not merge into the "
    "rows of one matrix",
    "Apply the layer before the transpose: it works on the last dimension, so the order does not matter. "
    "torch.nn.MultiheadAttention(batch_first=True) transposes its inputs itself; projections of your own "
    "around scaled_dot_product_attention do not need to.",
)
_SOFTMAX: Final = Remedy(
    "casts its whole input first, because dtype= (or torch.autocast) asks for another type than it has",
    "Drop dtype= (softmax of 16-bit input already accumulates in float32): torch.softmax(x, dim=-1); or let "
    "scaled_dot_product_attention do the whole of attention.",
)
_NORMED: Final = Remedy(
    "copies its input, which is not contiguous (transposed or permuted), and hands on a contiguous result",
    "Make the norm's input contiguous once, where it is transposed, and keep it so: what adds the result to "
    "the old tensor (a residual) takes over the old layout, and the next norm copies again.",
)
_OPERAND: Final = Remedy(
    "copies an operand whose strides (expanded over the batch, heads transposed forward, or transposed in "
    "the wrong dimensions) the matrix kernel cannot read",
    "Make the operands of the product contiguous where they arise, or fold the broadcast batch dimension "
    "into the rows: (x.flatten(0, 1) @ w) instead of an expanded w; for attention use "
    "scaled_dot_product_attention with enable_gqa=True.",
)
_CAST: Final = Remedy(
    "casts an input to the type that it works in or that dtype= asks for (torch.autocast, too, runs some ops "
    "in float32)",
    "Pass the tensor in the type that the op should work in, or cast it once where it is made.",
)
_OTHER: Final = Remedy(
    "makes a copy of its own before or after it works, as some ops always do",
    "Look at the ops inside the op that copies for what is copied: an input of another layout than the op "
    "works in is better passed as the op wants it.",
    sure=False,
)
_ADDEND: Final = Remedy(
    "copies its addend (the bias) into the output before the product is added to it",
    "Where the addend is not needed afterwards, addend.addmm_(a, b) adds the product into it; a "
    "one-dimensional bias can go through torch.nn.functional.linear, which most libraries add inside the "
    "matrix kernel.",
)
_BIAS: Final = Remedy(
    "copies the bias into the output before the product is added to it, as the library has no kernel that "
    "adds it for these inputs",
    "The copy of the bias is the library's: aligned sizes (multiples of 8) and contiguous inputs let more "
    "kernels add the bias themselves; bias=False does without, where the model can.",
    sure=False,
)
_DDP: Final = Remedy(
    "copies each gradient back out of DDP's communication bucket",
    "Construct the wrapper with DistributedDataParallel(..., gradient_as_bucket_view=True): gradients then "
    "live in the bucket.",
)
_SDPA: Final = Remedy(
    "pads or lays out an input for the fused kernel before it runs",
    "Make the head dimension (and the last dimension of a mask) a multiple of 8 and the inputs' last "
    "dimension contiguous.",
)

_INSIDE: Final = {
    "aten::softmax": _SOFTMAX,
    "aten::log_softmax": _SOFTMAX,
    "aten::reshape": _LAYOUT,
    "aten::flatten": _LAYOUT,
    "aten::unflatten": _LAYOUT,
    "aten::matmul": _OPERAND,
    "aten::bmm": _OPERAND,
    "aten::mm": _OPERAND,
    "aten::linear": _LINEAR,
    "aten::einsum": _OPERAND,
    "aten::scaled_dot_product_attention": _SDPA,
    "torch.distributed.ddp.reducer::copy_bucket_to_grad": _DDP,
}
"""Why ops that are not about copying copy all the same, by the op that the program called."""

CASTS: Final = frozenset({"aten::to", "aten::_to_copy"})
CONVOLVING: Final = frozenset(
    f"aten::{name}"
    for name in (
        *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        *("convolution", "_convolution", "convolution_backward"),
    )
)
MULTIPLYING: Final = CONVOLVING | frozenset(
    f"aten::{name}"
    for name in (
        *("linear", "matmul", "mm", "bmm", "mv", "addmm", "addmv", "addbmm", "baddbmm", "einsum"),
        *("chain_matmul", "scaled_dot_product_attention", "prelu", "lstm", "gru"),
    )
)
"""Ops that never cast by themselves: a cast inside them is one of ``torch.autocast``."""

ADDING: Final = frozenset(
    f"aten::{name}{form}" for name in ("addmm", "baddbmm", "addbmm", "addmv", "addr") for form in ("", "_")
) | {"aten::_addmm_activation"}
"""Ops that add a product to an addend, which the result begins as a copy of."""

COPY_OP: Final = "aten::copy_"


def is_on_request(op: str) -> bool:
    """Tell whether an op is there to copy, so that the program asked for it."""
    return op in EXPLICIT or ("copy" in op.rpartition("::")[2] and op not in _INSIDE)


def remedy(op: str, path: list[str], inside: list[str]) -> Remedy:
    """Say why an op copies, and what to do about it.

    ``path`` are the ops from just inside it to the one that launched the copy, ``inside`` all ops directly in
    it.
    """
    if _copies_addend(op, path):
        return _ADDEND if op in ADDING else _BIAS
    if f"{op}_" in inside:
        return _in_place(op)
    if op == "aten::layer_norm" and "aten::contiguous" in path:
        return _NORMED
    if op in _INSIDE:
        return _INSIDE[op]
    return _CAST if path and path[0] in CASTS else _OTHER


def _copies_addend(op: str, path: list[str]) -> bool:
    """Tell whether a copy is that of an addend into the result (arguments as for ``remedy``)."""
    working = [name for name in (op, *path) if name != COPY_OP]
    return bool(working) and working[-1] in ADDING


def _in_place(op: str) -> Remedy:
    short = op.rpartition("::")[2]
    return Remedy(
        f"works out of place: it clones its input, then runs {op}_ on the clone",
        f"Write x.{short}_(...) instead of x.{short}(...) where the input is not needed afterwards (autograd "
        "says so if it is): the in-place form touches the tensor once and copies nothing.",
    )
