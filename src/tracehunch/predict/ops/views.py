"""Operations that only describe memory anew, and those that allocate it: no kernels."""

from typing import Final

from tracehunch.predict.ops.steps import Call, Steps, contiguous

METADATA: Final = (
    "view", "view_as", "transpose", "t", "permute", "movedim", "swapaxes", "swapdims", "expand", "expand_as",
    "broadcast_to", "slice", "narrow", "select", "unsqueeze", "squeeze", "split", "split_with_sizes", "chunk",
    "tensor_split", "unbind", "detach", "alias", "as_strided", "unfold", "diagonal", "_unsafe_view",
    "unflatten", "mT", "mH", "real", "view_as_real", "view_as_complex", "lift_fresh", "_reshape_alias",
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "size", "stride",
    "is_contiguous", "requires_grad_", "set_", "identity", "detach_", "result_type", "promote_types",
    "is_pinned", "empty_permuted", "squeeze_", "unsqueeze_", "t_", "transpose_", "as_strided_", "swapaxes_",
    "is_same_size", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "_conj", "_neg_view", "lift",
    "_assert_tensor_metadata", "_has_same_storage_numel", "record_stream", "resize", "resize_as_", "values",
    "indices", "_values", "_indices", "crow_indices", "col_indices", "is_set_to", "sym_constrain_range",
    "sym_constrain_range_for_size", "_fused_sdp_choice", "_efficientzerotensor", "_pin_memory", "sym_size",
    "sym_stride", "sym_numel", "sym_storage_offset", "is_coalesced", "dense_dim", "sparse_dim",
    "imag",
)  # fmt: skip


def metadata(_: Call) -> Steps:
    """Change shape, strides or offset, or take memory from the allocator: nothing runs on the GPU."""
    return ()


def reshape(call: Call) -> Steps:
    """View where strides allow it, else copy."""
    shape = call.option("shape")
    if shape is None:
        shape = (call.first.numel,)
    shape = tuple(shape)
    if -1 in shape:
        known = 1
        for size in shape:
            known *= size if size != -1 else 1
        shape = tuple(call.first.numel // max(known, 1) if size == -1 else size for size in shape)
    return () if call.first.viewed(shape) is not None else contiguous(call.first)[0]
