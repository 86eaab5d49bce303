"""Norms of batches, forward and backward: cuDNN's where its terms are met, else PyTorch's own kernels."""

from typing import Final

from tracehunch.predict.ops.dtypes import HALF
from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.steps import (
    COPY,
    Call,
    Steps,
    fresh,
    joined,
    kernel,
    memcpy,
    memset,
    pointwise,
    under,
)
from tracehunch.predict.ops.tensor import Tensor

_CHANNELS: Final = 1
_IMAGE: Final = 4  # dimensions

# norms of channels that lie next to each other: see `_shares_channels`
_THREADS: Final = 512
_TILE: Final = 32
_EACH: Final = 16
_MOST_BLOCKS: Final = 128
_WORTH_SHARING: Final = 8


def batch_norm(call: Call) -> Steps:
    """Normalise channels over the batch: by cuDNN where its terms are met, else by PyTorch's own kernels.

    cuDNN takes images with weight and bias in fp32, and no bf16. `training` is an option, off where it is
    not given.
    """
    one = call.first
    if one.numel == 0:
        return ()
    # input, weight, bias and two running statistics; three tensors are those without weights
    weighted = len(call.tensors) > 3
    parameters = call.tensors[-1].dtype if len(call.tensors) > 1 else one.dtype
    training = bool(call.option("training") or call.option("train"))
    by_channel = _by_channel(one)
    if weighted and _cudnn_takes(one, parameters):
        return _batch_norm_of_cudnn(one, training=training, by_channel=by_channel)
    channels = fresh((one.size(_CHANNELS),), "fp32")
    if not training:
        taken = memcpy("dtod", channels.nbytes)
        if parameters in HALF:
            text = "direct_copy_kernel_cuda"
            taken = pointwise(text, channels, [channels], flops=0, algorithm="copy", cast=True)
        taken = under(COPY, taken)
        spread = pointwise("batch_norm_calc_invstd", channels, [channels], flops=3)
        return joined([taken, spread, _transform(one, by_channel=by_channel)])
    counters = fill_kernel(fresh((one.size(_CHANNELS),), "int32"))
    statistics = f"batch_norm_collect_statistics{'_channels_last' if by_channel else ''}_kernel"
    return joined(
        [
            counters if by_channel and _shares_channels(one) else (),
            _batch_norm_kernel(statistics, one, one.nbytes),
            pointwise("batch_norm_update_stats", channels, [channels, channels], flops=4),
            _transform(one, by_channel=by_channel),
        ]
    )


def batch_norm_backward(call: Call) -> Steps:
    """Derive a norm of batches: one kernel for images in their usual order, two for channels side by side.

    `train` is an option, on where it is not given; `output_mask` says which gradients are asked for.
    """
    one = call.at(1)
    if one.numel == 0:
        return ()
    trained = call.option("train") is not False
    weighted = any((call.option("output_mask") or (True, True, True))[1:])
    channels = fresh((1, one.size(_CHANNELS)), "fp32")
    if not trained and not weighted:
        return pointwise("batch_norm_elementwise_backward_eval", one, [one, channels], flops=2)
    if not _by_channel(one):
        return _batch_norm_kernel("batch_norm_backward_kernel", one, 3 * one.nbytes)
    counters = fill_kernel(fresh((one.size(_CHANNELS),), "int32"))
    parts = [
        counters if _shares_channels(one) else (),
        _batch_norm_kernel("batch_norm_backward_reduce_channels_last_kernel", one, 2 * one.nbytes),
    ]
    if trained:
        text = "batch_norm_backward_elemt_channels_last_kernel"
        return joined([*parts, _batch_norm_kernel(text, one, 3 * one.nbytes)])
    # what cuDNN normalised has no saved mean, which is made anew
    mean = fill_kernel(channels) if _cudnn_takes(one, call.at(2).dtype) else ()
    spread = pointwise("batch_norm_elementwise_backward_eval", one, [one, channels], flops=2)
    return joined([mean, *parts, spread])


def cudnn_batch_norm_backward(call: Call) -> Steps:
    """Derive cuDNN's: one kernel, with a memset before for channels last."""
    one = call.first
    run = _batch_norm_kernel("bn_bw_", one, 3 * one.nbytes, library="cudnn")
    return joined([memset() if _by_channel(one) else (), run])


def _cudnn_takes(one: Tensor, parameters: str) -> bool:
    """Whether cuDNN normalises a tensor with weight, bias and statistics of a dtype."""
    return parameters == "fp32" and one.dtype != "bf16" and len(one.shape) == _IMAGE


def _by_channel(one: Tensor) -> bool:
    """Whether channels lie next to each other."""
    return len(one.shape) <= 2 or (one.strides[_CHANNELS] == 1 and one.size(_CHANNELS) > 1)


def _batch_norm_of_cudnn(one: Tensor, *, training: bool, by_channel: bool) -> Steps:
    """Return one kernel; in training channels last take a memset before it."""
    if not training:
        return _batch_norm_kernel("bn_fw_inf_1C11_kernel", one, 2 * one.nbytes, library="cudnn")
    text = "batchnorm_fwtr_nhwc_semiPersist" if by_channel else "bn_fw_tr_1C11"
    run = _batch_norm_kernel(text, one, 2 * one.nbytes, library="cudnn")
    return joined([memset() if by_channel else (), run])


def _transform(one: Tensor, *, by_channel: bool) -> Steps:
    name = f"batch_norm_transform_input{'_channels_last' if by_channel else ''}_kernel"
    return _batch_norm_kernel(name, one, 2 * one.nbytes)


def _batch_norm_kernel(text: str, one: Tensor, moved: int, library: str = "pytorch") -> Steps:
    """Return one kernel: those that sum up a channel have one block for it, or share it."""
    sums = not text.startswith(("batch_norm_transform", "bn_fw_inf", "batch_norm_backward_elemt"))
    family = "batch_norm" if not sums else "channels_last" if _by_channel(one) else "channels"
    serial = one.numel // max(one.size(_CHANNELS), 1) if family == "channels" else 0
    return kernel(
        text, "batch-norm", family, moved, flops=4 * one.numel, dtype=one.dtype, items=one.numel,
        serial=serial, library=library,
    )  # fmt: skip


def _shares_channels(one: Tensor) -> bool:
    """Whether several blocks sum up a channel, and count each other in; the counters start as zeros.

    Source: PyTorch's `flexible_launch_configs`; right for 136 of 136 calls on an H200.
    """
    channels = one.size(_CHANNELS)
    rows = one.numel // max(channels, 1)
    columns = min(_power(channels), _TILE)
    lines = min(_power(-(-rows // _EACH)), _THREADS // columns)
    blocks = min(-(-rows // (lines * _EACH)), _MOST_BLOCKS)
    return blocks >= _WORTH_SHARING


def _power(size: int) -> int:
    """Return the largest power of two that is no more than a size."""
    return 1 << (max(size, 1).bit_length() - 1)
