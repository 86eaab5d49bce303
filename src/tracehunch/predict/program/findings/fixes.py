"""Why ops copy or wait, and what to write instead; in the words of the findings of a trace."""

from typing import Final, NamedTuple


class Remedy(NamedTuple):
    """Why (a clause after the op's name) and what to do; `sure`: both are known."""

    cause: str
    fix: str
    sure: bool = True


_ADDEND: Final = Remedy(
    "copies its addend (the bias) into the output before the product is added to it",
    "Where the addend is not needed afterwards, addend.addmm_(a, b) adds the product into it; a "
    "one-dimensional "
    "bias can go through torch.nn.functional.linear, which most libraries add inside the matrix kernel.",
)

HIDDEN: Final = {
    "aten::reshape": Remedy(
        "has to copy, because the tensor's strides (transposed or expanded) cannot be viewed in the new "
        "shape",
        "Reshape before the transpose or expand, keep the tensor's layout contiguous for the consumer, or "
        "use a "
        "consumer that takes strided input; for repeated key and value heads pass enable_gqa=True to "
        "scaled_dot_product_attention instead of expanding them.",
    ),
    "aten::matmul": Remedy(
        "copies an operand whose strides (expanded over the batch, heads transposed forward) the matrix "
        "kernel "
        "cannot read",
        "Make its operands contiguous where they arise, or fold the broadcast batch dimension into the "
        "rows; for "
        "attention use scaled_dot_product_attention with enable_gqa=True.",
    ),
    "aten::softmax": Remedy(
        "casts its whole input first, because dtype= (or torch.autocast) asks for another type than it has",
        "Drop dtype= (softmax of 16-bit input already accumulates in float32): torch.softmax(x, dim=-1); "
        "or let "
        "scaled_dot_product_attention do the whole of attention.",
    ),
    "aten::masked_fill": Remedy(
        "works out of place: it clones its input, then runs aten::masked_fill_ on the clone",
        "Call masked_fill_ where the original is not needed afterwards.",
    ),
    "aten::native_layer_norm": Remedy(
        "copies its input, which is not contiguous (transposed or permuted), and hands on a contiguous "
        "result",
        "Make the tensor contiguous once, where it is transposed, and keep it so.",
    ),
    "aten::addmm": _ADDEND,
    "aten::baddbmm": _ADDEND,
    "aten::bmm": Remedy(
        "copies an operand whose strides the matrix kernel cannot read",
        "Make its operands contiguous where they arise.",
    ),
    "aten::index_put": Remedy(
        "works out of place: it copies its input, then writes into the copy",
        "Write in place (x[rows] = values) where the original is not needed afterwards.",
    ),
}
"""By the op that the program called."""

ON_REQUEST: Final = {
    "aten::clone": "drop the clone where nothing writes to either tensor afterwards",
    "aten::contiguous": "let the consumer take the strided tensor, or produce it in this layout in the first "
    "place",
    "aten::to": "keep the tensor in one dtype between ops, so that no cast is needed",
    "aten::copy_": "write the result where it is wanted (out=, or into a view) instead of copying it there",
    "aten::cat": "allocate the result once and write the parts into slices of it",
    "aten::index": "index with slices, which are views, where the picked elements form a range; or pick them "
    "once and reuse the result",
    "aten::repeat": "use expand(), which copies nothing, where the consumer accepts strides of 0",
}
"""How to avoid a copy that the program asked for, by op."""

AUTOCAST: Final = Remedy(
    "autocast runs matrix products in 16 bits, norms, softmax and losses in float32, and casts what they "
    "are given.",
    "Keep the whole forward inside one torch.autocast block, which casts each weight once; in inference "
    "cast the "
    "model instead, model.to(torch.bfloat16): norms and softmax compute in float32 inside all the same.",
)

VALUE: Final = Remedy(
    "hands a value of a tensor to Python",
    "Keep the value on the GPU (torch.where(c, a, b) in place of `if c:`); collect losses and metrics as "
    "tensors "
    "(loss.detach()) and read them once every so many steps.",
)
SIZE: Final = Remedy(
    "makes a tensor whose size depends on values on the GPU",
    "Keep the size fixed: torch.where(mask, a, b) with all three arguments, x * mask or masked_fill(mask, "
    "v) in "
    "place of indexing by a mask; topk or a capacity per expert in place of nonzero.",
)
TO_HOST: Final = Remedy(
    "copies from the GPU and waits for the copy",
    "Copy into pinned memory with non_blocking=True, and wait once, for an event, when the values are "
    "needed.",
)
TO_DEVICE: Final = Remedy(
    "copies to the GPU and waits for the copy",
    "Make the tensor on the GPU (torch.full, torch.arange with device=) or once, outside the loop; send "
    "what has "
    "to be sent from pinned memory with non_blocking=True.",
)
