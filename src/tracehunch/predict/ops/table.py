"""Which function knows what an operation launches: plain names of ops, as ATen and torch have them."""

from collections.abc import Callable
from typing import Final

from tracehunch.predict.ops import (
    accumulating,
    batch_norms,
    composed,
    convolution,
    convolution_backward,
    distances,
    elementwise,
    grids,
    grouped,
    heads,
    indexing,
    layouts,
    losses,
    norms,
    optimizers,
    pooling,
    products,
    rearranging,
    recurrent,
    reducing,
    reductions,
    rows,
    sorting,
    views,
)
from tracehunch.predict.ops.steps import Call, Steps

Handler = Callable[[Call], Steps]

_ONE_KERNEL: Final = (
    "median", "bucketize", "searchsorted", "tril_indices", "triu_indices", "trace", "im2col", "col2im",
    "grid_sampler_2d", "grid_sampler_3d", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
    "replication_pad1d", "replication_pad2d", "replication_pad3d", "upsample_nearest1d",
    "upsample_nearest3d", "upsample_bicubic2d", "upsample_linear1d", "upsample_trilinear3d",
    "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
    "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "upsample_nearest1d_backward",
    "_weight_norm_interface", "max_pool3d_with_indices", "avg_pool3d", "adaptive_max_pool2d",
    "_adaptive_avg_pool3d", "rrelu_with_noise", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell",
    "_amp_update_scale_", "_assert_async", "_masked_scale", "cauchy_", "geometric_",
    "log_normal_", "binary_cross_entropy_backward", "_cdist_forward", "glu_backward", "logspace",
    "_weight_norm_interface_backward", "upsample_nearest3d_backward", "_upsample_nearest_exact1d_backward",
    "_upsample_nearest_exact2d_backward", "_upsample_nearest_exact3d_backward",
    "_cudnn_init_dropout_state", "poisson", "binomial", "linalg_cross", "addr", "addr_",
    "fake_quantize_per_tensor_affine_cachemask",
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
)  # fmt: skip
"""Operations of one kernel, by their source in ATen."""

_NAMES: Final[tuple[tuple[Handler, tuple[str, ...]], ...]] = (
    (elementwise.elementwise, elementwise.arithmetic_names()),
    (elementwise.masked_fill_in_place, ("masked_fill_",)),
    (elementwise.masked_fill, ("masked_fill",)),
    (elementwise.where, ("where",)),
    (elementwise.fill, ("fill_", "zero_", "fill", "zero")),
    (
        elementwise.create,
        (
            "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones",
            "new_full", "scalar_tensor",
        ),
    ),
    (elementwise.arange, ("arange", "linspace", "range")),
    (
        elementwise.random,
        (
            "randn", "rand", "randint", "randn_like", "rand_like", "randint_like", "normal_", "uniform_",
            "bernoulli_", "exponential_", "random_", "bernoulli", "normal",
        ),
    ),
    (elementwise.triangle, ("tril", "triu", "tril_", "triu_")),
    (elementwise.dropout, ("dropout", "native_dropout", "feature_dropout", "alpha_dropout")),
    (elementwise.clone, ("clone",)),
    (elementwise.contiguous_op, ("contiguous",)),
    (elementwise.copy_in_place, ("copy_",)),
    (
        elementwise.to,
        (
            "to", "_to_copy", "type", "type_as", "float", "half", "bfloat16", "double", "int", "long", "bool",
        ),
    ),
    (elementwise.to_host, ("cpu", "to_cpu", "tolist", "numpy")),
    (elementwise.to_device, ("cuda", "to_cuda")),
    (elementwise.item, ("item", "_local_scalar_dense", "is_nonzero", "equal_item")),
    (
        layouts.cat,
        ("cat", "concat", "concatenate", "hstack", "vstack", "column_stack", "row_stack"),
    ),
    (layouts.stack, ("stack",)),
    (layouts.repeat, ("repeat", "tile")),
    (layouts.repeat_interleave, ("repeat_interleave",)),
    (layouts.moved_about, ("roll", "flip", "fliplr", "flipud", "rot90")),
    (layouts.pad, ("pad", "constant_pad_nd")),
    (layouts.reshape_copy, ("reshape_copy",)),
    (layouts.one_hot, ("one_hot",)),
    (layouts.glu, ("glu",)),
    (layouts.placed_back, ("slice_backward", "select_backward")),
    (layouts.diagonal_placed, ("diag_embed", "diagonal_backward")),
    (views.metadata, views.METADATA),
    (views.reshape, ("reshape", "flatten", "ravel", "reshape_as")),
    (indexing.embedding, ("embedding", "index_select")),
    (indexing.index, ("index", "_unsafe_index")),
    (indexing.gather, ("gather", "take_along_dim", "take")),
    (
        indexing.scatter_in_place,
        ("scatter_", "scatter_add_", "index_add_", "index_copy_", "index_fill_", "put_"),
    ),
    (reducing.reduce_by_index, ("scatter_reduce", "scatter_reduce_", "index_reduce", "index_reduce_")),
    (reducing.masked_scatter, ("masked_scatter", "masked_scatter_")),
    (indexing.scatter, ("scatter", "scatter_add", "index_add", "index_copy", "index_fill")),
    (
        accumulating.index_put,
        ("index_put_", "index_put", "_index_put_impl_", "_unsafe_index_put", "_index_put_impl"),
    ),
    (indexing.nonzero, ("nonzero", "argwhere", "nonzero_numpy")),
    (indexing.masked_select, ("masked_select",)),
    (accumulating.embedding_backward, ("embedding_dense_backward", "embedding_backward")),
    (sorting.sort, ("sort", "argsort", "msort")),
    (sorting.topk, ("topk",)),
    (
        sorting.not_modelled,
        (
            "kthvalue", "mode", "unique", "unique_consecutive", "_unique2",
        ),
    ),
    (reductions.reduce, tuple(reductions.SIMPLE)),
    (reductions.all_any, ("all", "any", "_is_all_true", "_is_any_true")),
    (reductions.extremes, ("max", "min", "argmax", "argmin")),
    (reductions.logsumexp, ("logsumexp",)),
    (
        reductions.scan,
        ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "cumsum_", "cumprod_"),
    ),
    (rows.softmax, ("softmax", "log_softmax", "_softmax", "_log_softmax", "softmin", "special_softmax")),
    (rows.softmax_backward, ("_softmax_backward_data", "_log_softmax_backward_data")),
    (rows.safe_softmax, ("_safe_softmax",)),
    (rows.attention, ("scaled_dot_product_attention",)),
    (heads.rescaled, ("_transform_bias_rescale_qkv",)),
    (heads.masked_softmax, ("_masked_softmax",)),
    (products.mm, ("mm", "bmm")),
    (products.narrow, ("_int_mm", "_scaled_mm")),
    (products.packed, ("_weight_int8pack_mm", "_weight_int4pack_mm")),
    (products.addmm, ("addmm", "addmm_", "_addmm_activation")),
    (products.baddbmm, ("baddbmm", "baddbmm_")),
    (products.linear, ("linear",)),
    (products.matmul, ("matmul", "__matmul__", "inner_matmul")),
    (grouped.grouped, ("_grouped_mm",)),
    (recurrent.recurrent, ("_cudnn_rnn",)),
    (recurrent.recurrent_backward, ("_cudnn_rnn_backward",)),
    (
        recurrent.cell_backward,
        (
            "_thnn_fused_lstm_cell_backward_impl", "_thnn_fused_gru_cell_backward",
        ),
    ),
    (products.vectors, ("mv", "addmv", "dot", "vdot", "inner")),
    (
        convolution.conv,
        (
            "conv2d", "cudnn_convolution", "convolution", "_convolution", "conv_transpose2d",
            "cudnn_convolution_transpose",
        ),
    ),
    (convolution_backward.conv_backward, ("convolution_backward",)),
    (norms.layer_norm, ("layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm")),
    (norms.layer_norm_backward, ("native_layer_norm_backward", "_fused_rms_norm_backward")),
    (norms.group_norm, ("group_norm", "native_group_norm")),
    (norms.group_norm_backward, ("native_group_norm_backward",)),
    (
        batch_norms.batch_norm,
        (
            "batch_norm", "_batch_norm_impl_index", "native_batch_norm", "cudnn_batch_norm",
            "_native_batch_norm_legit", "_batch_norm_with_update", "_batch_norm_no_update",
        ),
    ),
    (batch_norms.batch_norm_backward, ("native_batch_norm_backward", "batch_norm_backward")),
    (batch_norms.cudnn_batch_norm_backward, ("cudnn_batch_norm_backward",)),
    (losses.cross_entropy, ("cross_entropy", "cross_entropy_loss")),
    (
        losses.nll_loss,
        ("nll_loss", "nll_loss_nd", "nll_loss_forward", "nll_loss2d", "nll_loss2d_forward"),
    ),
    (losses.nll_loss_backward, ("nll_loss_backward", "nll_loss2d_backward")),
    (losses.mse_loss, ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")),
    (
        rearranging.shuffled,
        (
            "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle",
        ),
    ),
    (rearranging.unpooled, ("max_unpool2d", "max_unpool3d")),
    (rearranging.diagonal_blocks, ("block_diag",)),
    (rearranging.diagonal_copied, ("diagonal_copy",)),
    (rearranging.renormalised, ("renorm",)),
    (rearranging.bags, ("_embedding_bag", "_embedding_bag_forward_only")),
    (distances.euclidean, ("_euclidean_dist",)),
    (distances.cdist_backward, ("_cdist_backward",)),
    (distances.soft_margin, ("soft_margin_loss",)),
    (distances.soft_margin_backward, ("soft_margin_loss_backward",)),
    (grids.affine_grid, ("affine_grid_generator", "affine_grid_generator_backward")),
    (grids.rounded_by_channel, ("fake_quantize_per_channel_affine_cachemask",)),
    (composed.bce_with_logits, ("binary_cross_entropy_with_logits",)),
    (composed.binary_cross_entropy, ("binary_cross_entropy",)),
    (composed.isin, ("isin",)),
    (composed.equal, ("equal",)),
    (composed.eye, ("eye",)),
    (composed.histc, ("histc",)),
    (composed.bincount, ("bincount",)),
    (composed.multinomial, ("multinomial",)),
    (composed.randperm, ("randperm",)),
    (composed.count_nonzero, ("count_nonzero",)),
    (composed.scattered_copy, ("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter")),
    (
        composed.filled_then,
        (
            "unfold_backward", "index_select_backward", "reflection_pad1d_backward",
            "reflection_pad2d_backward", "replication_pad1d_backward", "replication_pad2d_backward",
            "grid_sampler_2d_backward", "grid_sampler_3d_backward",
            "max_pool3d_with_indices_backward", "avg_pool3d_backward",
        ),
    ),
    (composed.one_kernel, _ONE_KERNEL),
    (pooling.max_pool, ("max_pool2d", "max_pool2d_with_indices")),
    (pooling.average_pool, ("avg_pool2d",)),
    (pooling.adaptive_average_pool, ("adaptive_avg_pool2d", "_adaptive_avg_pool2d")),
    (pooling.upsample, ("upsample_nearest2d", "upsample_bilinear2d", "interpolate")),
    (
        pooling.spread_back,
        (
            "max_pool2d_with_indices_backward", "avg_pool2d_backward", "_adaptive_avg_pool2d_backward",
            "upsample_nearest2d_backward", "upsample_bilinear2d_backward", "upsample_bicubic2d_backward",
            "_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa_backward",
            "upsample_trilinear3d_backward", "adaptive_max_pool2d_backward",
        ),
    ),
    (optimizers.unscale, ("_amp_foreach_non_finite_check_and_unscale_",)),
    (optimizers.foreach, optimizers.LISTED),
    (optimizers.foreach_norm, ("_foreach_norm",)),
)  # fmt: skip

_HANDLERS: Final = {name: handler for handler, names in _NAMES for name in names}

_PREFIXES: Final = (
    "torch.nn.functional.",
    "torch.special.",
    "torch.linalg.",
    "torch.Tensor.",
    "torch.",
    "aten::",
)


def plain_name(name: str) -> str:
    """Return an op's name without namespace and overload: "aten::add.Tensor" is "add"."""
    plain = name.strip()
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    return plain.split(".", 1)[0]


def handler_of(name: str) -> Handler | None:
    """Return the function for a plain name."""
    return _HANDLERS.get(name)


def known_ops() -> tuple[str, ...]:
    """Return the plain names of all operations that are known, sorted."""
    return tuple(sorted(_HANDLERS))
