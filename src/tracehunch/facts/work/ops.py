"""Every op whose work is known, and its formula."""

from collections.abc import Callable, Mapping
from typing import Final

from tracehunch.facts.work import (
    attention_ops,
    convolution,
    images,
    indexing,
    norms,
    pointwise,
    products,
    reductions,
)
from tracehunch.facts.work.inputs import Call, NotRecorded
from tracehunch.facts.work.work import Work

Formula = Callable[[Call], Work]

_PRODUCTS: Final[Mapping[str, Formula]] = {
    "mm": products.mm,
    "bmm": products.mm,
    "addmm": products.addmm,
    "addmm_": products.addmm,
    "_addmm_activation": products.addmm,
    "baddbmm": products.addmm,
    "baddbmm_": products.addmm,
    "addbmm": products.addbmm,
    "addbmm_": products.addbmm,
    "addmv": products.addmm,
    "addmv_": products.addmm,
    "mv": products.mv,
    "dot": products.mv,
    "vdot": products.mv,
    "_int_mm": products.int_mm,
    "_scaled_mm": products.scaled_mm,
    "_scaled_mm_v2": products.scaled_mm,
    "_grouped_mm": products.grouped_mm,
    "_scaled_grouped_mm": products.grouped_mm,
    "linear": products.linear,
    "matmul": products.matmul,
}

_CONVOLUTIONS: Final[Mapping[str, Formula]] = {
    "convolution": convolution.convolution,
    "_convolution": convolution.convolution,
    "convolution_overrideable": convolution.convolution,
    "cudnn_convolution": convolution.forward(3, 2, 4),
    "cudnn_convolution_relu": convolution.forward(3, 4, 5, bias=2),
    "cudnn_convolution_transpose": convolution.transposed(4, 2, 5, 3, groups=6),
    "miopen_convolution": convolution.forward(4, 3, 5, bias=2),
    "miopen_depthwise_convolution": convolution.forward(4, 3, 5, bias=2),
    "miopen_convolution_transpose": convolution.transposed(5, 3, 6, 4, groups=7),
    "_conv_depthwise2d": convolution.forward(4, 5, 6, bias=3),
    "conv_depthwise3d": convolution.forward(4, 5, 6, bias=3),
    "mkldnn_convolution": convolution.forward(4, 3, 5, bias=2),
    "convolution_backward": convolution.backward,
    "convolution_backward_overrideable": convolution.backward,
}

_MULTIPLYING: Final[Mapping[str, Formula]] = {**_PRODUCTS, **_CONVOLUTIONS, **attention_ops.formulas()}

_MOVING: Final[Mapping[str, Formula]] = {
    **dict.fromkeys(pointwise.OPS, pointwise.out_of_place),
    **{f"{name}_": pointwise.in_place for name in pointwise.OPS},
    **dict.fromkeys(pointwise.WRITING, pointwise.write),
    "native_dropout": pointwise.dropout,
    "_fused_dropout": pointwise.dropout,
    # reductions, and what goes over rows
    "sum": reductions.reduction(dtype=3),
    "nansum": reductions.reduction(dtype=3),
    "mean": reductions.reduction(dtype=3),
    "prod": reductions.reduction(dtype=3),
    "amax": reductions.reduction(),
    "amin": reductions.reduction(),
    "max": reductions.extremum,
    "min": reductions.extremum,
    "argmax": reductions.reduction(result="int64"),
    "argmin": reductions.reduction(result="int64"),
    "any": reductions.reduction(result="bool"),
    "all": reductions.reduction(result="bool"),
    "var": reductions.reduction(),
    "std": reductions.reduction(),
    "linalg_vector_norm": reductions.reduction(dims=2, dtype=4),
    "cumsum": reductions.scan,
    "cumprod": reductions.scan,
    "_softmax": reductions.normalised,
    "_log_softmax": reductions.normalised,
    "_softmax_backward_data": reductions.normalised_backward,
    "_log_softmax_backward_data": reductions.normalised_backward,
    "sort": reductions.sort,
    "topk": reductions.topk,
    "tril": reductions.same_size,
    "triu": reductions.same_size,
    "tril_": reductions.same_size,
    "triu_": reductions.same_size,
    "flip": reductions.same_size,
    "roll": reductions.same_size,
    # normalisation layers
    "native_layer_norm": norms.layer_norm,
    "native_layer_norm_backward": norms.layer_norm_backward,
    "_fused_rms_norm": norms.rms_norm,
    "_fused_rms_norm_backward": norms.rms_norm_backward,
    "native_group_norm": norms.group_norm,
    "native_group_norm_backward": norms.group_norm_backward,
    "native_batch_norm": norms.batch_norm,
    "cudnn_batch_norm": norms.batch_norm,
    "miopen_batch_norm": norms.batch_norm,
    "native_batch_norm_backward": norms.batch_norm_backward,
    "cudnn_batch_norm_backward": norms.batch_norm_backward,
    "miopen_batch_norm_backward": norms.batch_norm_backward,
    # picking, putting, joining
    "gather": indexing.gather,
    "index_select": indexing.index_select,
    "embedding": indexing.embedding,
    "embedding_dense_backward": indexing.embedding_backward,
    "scatter": indexing.scatter,
    "scatter_": indexing.scatter,
    "scatter_add": indexing.scatter_add,
    "scatter_add_": indexing.scatter_add,
    "index_copy_": indexing.index_copy,
    "index_add_": indexing.index_add,
    "cat": indexing.cat,
    "nll_loss_forward": indexing.nll_loss,
    "nll_loss_backward": indexing.nll_loss_backward,
    "arange": indexing.arange,
    # images
    "max_pool2d_with_indices": images.pool(dilation=4, indices=True),
    "avg_pool2d": images.pool(),
    "max_pool2d_with_indices_backward": images.pool_backward(indices=7),
    "avg_pool2d_backward": images.pool_backward(),
    "_adaptive_avg_pool2d": images.resize,
    "_adaptive_avg_pool2d_backward": images.pool_backward(),
    "upsample_nearest2d": images.resize,
    "upsample_bilinear2d": images.resize,
    "upsample_bicubic2d": images.resize,
    "upsample_nearest2d_backward": images.resize_backward,
    "upsample_bilinear2d_backward": images.resize_backward,
    "upsample_bicubic2d_backward": images.resize_backward,
}

_NAMESPACE: Final = "aten::"
_OVER_LISTS: Final = ("_foreach_", "_fused_adam", "_fused_sgd", "_amp_foreach_")
_GENERATED: Final = "triton_"
_MOST: Final = 1 << 60
"""FLOPs and bytes that no call has: an hour of the fastest GPU has 10^19."""


def work_of(call: Call) -> Work:
    """Return the work of a call.

    Raises:
        NotRecorded: the op has no formula, or the trace does not hold what it needs; the text says which.

    """
    formula = _formula(call.name)
    if formula is None:
        raise NotRecorded(_why_unknown(call.name))
    if not call.inputs:
        raise NotRecorded(f"the shapes of {call.name} were not recorded")
    try:
        work = formula(call)
    except (ArithmeticError, LookupError, ValueError):  # dimensions that the op does not take
        work = None
    if work is None or not (_is_size(work.flops) and _is_size(work.bytes)):
        raise NotRecorded(f"the shapes recorded for {call.name} are none that it takes")
    return work


def _is_size(number: int | None) -> bool:
    return number is None or 0 <= number < _MOST


def _why_unknown(name: str) -> str:
    plain = name.removeprefix(_NAMESPACE)
    if plain.startswith(_OVER_LISTS):
        return f"the profiler does not record the tensors that {name} takes"
    if plain.startswith(_GENERATED):
        return "which tensors a generated kernel reads and writes is not in the trace"
    return f"what {name} computes and moves is not known"


def _formula(name: str) -> Formula | None:
    if not name.startswith(_NAMESPACE):
        return None
    plain = name.removeprefix(_NAMESPACE)
    return _MULTIPLYING.get(plain) or _MOVING.get(plain)
