"""Convolutions, as cuDNN runs them on Hopper: roughly, since its heuristics were only looked at from outside.

cuDNN's tensor-core kernels want channels last. Tensors that are not are turned before and after; few channels
are padded, which clears the padded tensors with memsets. A bias is added by a kernel of PyTorch's.
"""

from typing import Final

from tracehunch.predict.ops.dtypes import HALF
from tracehunch.predict.ops.registry import handles
from tracehunch.predict.ops.steps import Call, Steps, fresh, joined, kernel, memset, pointwise, unknown
from tracehunch.predict.ops.tensor import Tensor

_DIMS: Final = 4  # batch, channels, height, width
_VECTOR: Final = 8  # channels that a 16-bit kernel reads at once
_PATCH: Final = 14  # side of a window from which on a convolution cuts patches
_FEW: Final = 16  # channels below which 32-bit kernels leave tensors as they are
_WIDE: Final = 3  # side of a window above which 32-bit results are turned back
_KILO: Final = 1000


@handles("conv2d", "cudnn_convolution", "convolution", "_convolution")
def conv2d(call: Call) -> Steps:
    """Turn to channels last, convolve, turn back, add the bias."""
    one, weight = call.first, call.at(1)
    if len(one.shape) != _DIMS or call.option("groups", 1) != 1 or call.option("transposed"):
        return unknown("only plain convolutions of images were looked at")
    out = _output(call, one, weight)
    if out.numel == 0:
        return ()
    flops = 2 * out.numel * weight.numel // weight.size(0)
    half = one.dtype in HALF
    family = "conv_half" if half else "conv"
    moved = one.nbytes + weight.nbytes + out.nbytes
    run = kernel(
        "", "conv", family, moved, flops=flops, dtype=one.dtype, items=flops // _KILO, library="cudnn"
    )
    parts = [*_before(call, one, weight), run]
    if len(parts) > 1 and out.size(2) * out.size(3) > 1 and (half or weight.size(2) > _WIDE):
        parts.append(
            kernel(
                "nhwcToNchwKernel",
                "layout-transform",
                "strided",
                2 * out.nbytes,
                items=out.numel,
                library="cudnn",
            )
        )
    if len(call.tensors) > 2:  # input, weight, bias
        parts.append(pointwise("CUDAFunctor_add", out, [out, fresh((1, out.size(1), 1, 1), out.dtype)]))
    return joined(parts)


def _output(call: Call, one: Tensor, weight: Tensor) -> Tensor:
    stride, padding = call.option("stride", 1), call.option("padding", 0)
    sizes = []
    for dim in (2, 3):
        step = stride if isinstance(stride, int) else stride[dim - 2]
        edge = padding if isinstance(padding, int) else padding[dim - 2]
        sizes.append(max(0, (one.size(dim) + 2 * edge - weight.size(dim)) // step + 1))
    return fresh((one.size(0), weight.size(0), *sizes), one.dtype)


def _before(call: Call, one: Tensor, weight: Tensor) -> list[Steps]:
    """Return what turns input and weight, none where a kernel takes them as they are."""
    channels, window = one.size(1), weight.size(2)
    last = one.strides[1] == 1 and channels > 1
    stride = call.option("stride", 1)
    plain = window == 1 and stride in (1, (1, 1), [1, 1])
    if last or plain:
        return []
    turned = [
        kernel(
            "nchwToNhwcKernel",
            "layout-transform",
            "strided",
            2 * part.nbytes,
            items=part.numel,
            library="cudnn",
        )
        for part in (one, weight)
    ]
    if one.dtype not in HALF:
        return turned if channels >= _FEW else []
    if channels % _VECTOR == 0:
        return turned
    return [memset(), turned[0], memset(), turned[1]] if window >= _PATCH else []
