"""Convolutions of images, as cuDNN and PyTorch run them on Hopper: how many kernels, by fitted trees.

cuDNN's tensor-core kernels want channels last. Tensors that are not are turned before and after; few channels
are padded, which clears the padded tensors with memsets. A bias is added by a kernel of PyTorch's, but for
PyTorch's own kernel of one filter a channel, which adds it itself. What cuDNN picks was only looked at from
outside: the trees (`convolution.toml`) tell of three in four.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Final

from tracehunch.facts.work import convolution_flops, convolved_size
from tracehunch.predict.ops.dtypes import HALF
from tracehunch.predict.ops.steps import (
    Call,
    Steps,
    contiguous,
    copied,
    fresh,
    joined,
    kernel,
    memset,
    pointwise,
    under,
    unknown,
)
from tracehunch.predict.ops.tensor import Tensor
from tracehunch.predict.ops.trees import Node, Outcome, grown, outcome_of

_IMAGE: Final = 4  # batch, channels, height, width
_SEQUENCE: Final = 3  # batch, channels, length
_OF_ROW: Final = {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0}
_KILO: Final = 1000
_VECTOR: Final = 8  # channels that a 16-bit kernel reads at once
_TILE: Final = 128  # side of the tiles that work is counted in
_PATCH: Final = 14  # side of a window that cuts an image into patches: larger than those of the trees
_FEW: Final = 16  # channels below which 32-bit patches stay as they are


def conv(call: Call) -> Steps:
    """Turn to channels last, convolve, turn back, add the bias; of sequences as of images of one row."""
    packed, call = as_images(call)
    one, weight = call.first, call.at(1)
    if len(one.shape) != _IMAGE or _number(call.option("dilation", 1)) != 1:
        return unknown("only convolutions of images and sequences, of neighbours, were looked at")
    transposed = call.name.endswith("transpose2d") or bool(call.option("transposed"))
    out = output(call, transposed=transposed)
    if out.numel == 0:
        return ()
    name = family(call, transposed=transposed)
    if not name:
        return unknown("convolutions in groups were looked at where each channel is one")
    before, one, weight = laid_out_alike(one, weight)
    call = replace(call, tensors=(one, weight, *call.tensors[2:]))
    told = patches(one) if weight.size(2) >= _PATCH else outcome_of(trees()[name], features(call, out))
    biased = len(call.tensors) > 2 and not _takes_bias(call)  # input, weight, bias
    added = under(
        "aten::add_", pointwise("CUDAFunctor_add", out, [out, fresh((1, out.size(1), 1, 1), out.dtype)])
    )
    run = under(_op(call, transposed=transposed), _convolved(one, weight, out, told, transposed=transposed))
    return joined([packed, before, run, added if biased else ()])


def as_images(call: Call) -> tuple[Steps, Call]:
    """Return a convolution of sequences as one of images of one row, as ATen views it; others as they are.

    Sequences that are not contiguous are copied first.
    """
    if not call.tensors or any(len(one.shape) not in (1, _SEQUENCE) for one in call.tensors):
        return (), call
    options = dict(call.options)
    for name, of_row in _OF_ROW.items():
        given = options.get(name)
        if given is not None:
            options[name] = (of_row, _number(given))
    packed = [contiguous(one) for one in call.tensors]
    tensors = tuple(_with_row(one) if len(one.shape) == _SEQUENCE else one for _, one in packed)
    return joined(steps for steps, _ in packed), replace(call, tensors=tensors, options=options)


def _with_row(one: Tensor) -> Tensor:
    batch, channels, length = one.shape
    of_batch, of_channel, of_place = one.strides
    return replace(
        one, shape=(batch, channels, 1, length), strides=(of_batch, of_channel, of_place * length, of_place)
    )


def laid_out_alike(one: Tensor, weight: Tensor) -> tuple[Steps, Tensor, Tensor]:
    """Copy input or weight to channels last where the other is: cuDNN is given both alike."""
    last = _is_last(one) or _is_last(weight)
    steps: list[Steps] = []
    made = []
    for part in (one, weight):
        wanted = _with_channels_last(part) if last else fresh(part.shape, part.dtype)
        fits = is_in(part, wanted)
        steps.append(() if fits else copied(part, wanted))
        made.append(part if fits else wanted)
    return joined(steps), made[0], made[1]


def is_in(one: Tensor, wanted: Tensor) -> bool:
    """Whether a tensor lies in memory as another of its shape."""
    sizes = zip(one.shape, one.strides, wanted.strides, strict=True)
    return all(first == second for size, first, second in sizes if size != 1)


def _with_channels_last(one: Tensor) -> Tensor:
    _, channels, height, width = one.shape
    return replace(one, strides=(channels * height * width, 1, width * channels, channels), offset=0)


def _op(call: Call, *, transposed: bool) -> str:
    """Return the op under which a trace shows the kernels."""
    if transposed:
        return "aten::cudnn_convolution_transpose"
    return "aten::_conv_depthwise2d" if _takes_bias(call) else "aten::cudnn_convolution"


def family(call: Call, *, transposed: bool) -> str:
    """Return the name of the tree, "" where there is none."""
    groups = int(call.option("groups", 1))
    if transposed:
        return "transposed" if groups == 1 else ""
    if groups == 1:
        return "plain"
    return "depthwise" if groups == call.first.size(1) else ""


def output(call: Call, *, transposed: bool) -> Tensor:
    """Return the result's shape and type."""
    one, weight = call.first, call.at(1)
    sides = []
    for dim in (2, 3):
        step, edge = _along(call.option("stride", 1), dim), _along(call.option("padding", 0), dim)
        if transposed:
            sides.append(max(0, (one.size(dim) - 1) * step - 2 * edge + weight.size(dim)))
        else:
            sides.append(convolved_size(one.size(dim), weight.size(dim), step, edge))
    filters = weight.size(1) * int(call.option("groups", 1)) if transposed else weight.size(0)
    return fresh((one.size(0), filters, *sides), one.dtype)


def features(call: Call, out: Tensor) -> dict[str, float]:
    """Return what the trees ask: sizes, most of them logarithms to base 2."""
    one, weight = call.first, call.at(1)
    groups = int(call.option("groups", 1))
    window, stride = weight.size(3), _along(call.option("stride", 1), 3)
    rows = out.size(0) * out.size(2) * out.size(3)
    inner = one.size(1) * weight.size(2) * weight.size(3) // groups
    tiles = -(-rows // _TILE) * -(-out.size(1) // _TILE)
    plain = window == 1 and stride == 1 and _along(call.option("padding", 0), 3) == 0
    return {
        "batch": math.log2(one.size(0)),
        "channels": math.log2(one.size(1)),
        "filters": math.log2(out.size(1)),
        "side": math.log2(one.size(3)),
        "flat": float(one.size(2) == 1),
        "window": float(window),
        "stride": float(stride),
        "rows": math.log2(rows),
        "inner": math.log2(inner),
        "work": math.log2(rows * inner * out.size(1)),
        "tiles": math.log2(tiles),
        "half": float(one.dtype in HALF),
        "bf16": float(one.dtype == "bf16"),
        "last": float(_is_last(one)),
        "vectors": float(one.size(1) % _VECTOR == 0),
        "written_in_vectors": float(out.size(1) % _VECTOR == 0),
        "plain": float(plain),
    }


def patches(one: Tensor) -> Outcome:
    """Return kernels and memsets where large windows cut an image into patches, as vision transformers do."""
    if _is_last(one) or (one.dtype not in HALF and one.size(1) < _FEW):
        return Outcome(1, 0, 1)
    return Outcome(4, 2 if one.dtype in HALF and one.size(1) % _VECTOR else 0, 1)


@lru_cache(maxsize=1)
def trees() -> Mapping[str, Node | Outcome]:
    """Return the trees of kernels and memsets, a bias left out."""
    table = tomllib.loads((files(__package__) / "convolution.toml").read_text(encoding="utf-8"))
    return grown(table["trees"])


def _convolved(one: Tensor, weight: Tensor, out: Tensor, told: Outcome, *, transposed: bool) -> Steps:
    """Return the convolution with so many kernels: all but one turn or pad its input, weight and result."""
    items, inner = _work(one, weight, out, transposed=transposed)
    half = one.dtype in HALF
    kind = "conv_each" if weight.size(1) == 1 and not transposed else "conv_half" if half else "conv"
    moved = one.nbytes + weight.nbytes + out.nbytes
    positions, filters = (one.numel, one.size(1)) if transposed else (out.numel, weight.size(0))
    run = kernel(
        "", "conv", kind, moved, flops=convolution_flops(positions, weight.numel, filters), dtype=one.dtype,
        items=items, serial=inner, library="cudnn",
    )  # fmt: skip
    turned = [
        kernel("", "layout-transform", "strided", 2 * part.nbytes, items=part.numel, library="cudnn")
        for part in (one, weight, out)
    ]
    before, after = turned[: max(min(told.kernels - 1, 2), 0)], turned[2:] * max(told.kernels - 3, 0)
    return joined([*[memset()] * told.memsets, *before, run, *after])


def _work(one: Tensor, weight: Tensor, out: Tensor, *, transposed: bool) -> tuple[int, int]:
    """Return thousands of FLOPs with rows and columns filled up to tiles, and what a tile sums up.

    Of one filter a channel: the multiplications, and the window.
    """
    if transposed:
        rows, columns, inner = one.numel // one.size(1), weight.numel // weight.size(0), one.size(1)
    else:
        rows, columns, inner = out.numel // out.size(1), out.size(1), weight.numel // weight.size(0)
    if weight.size(1) == 1:
        return out.numel * inner // _KILO, inner
    tiles = -(-rows // _TILE) * -(-columns // (_TILE // 2))
    return 2 * tiles * _TILE * (_TILE // 2) * inner // _KILO, inner


def _takes_bias(call: Call) -> bool:
    """Whether PyTorch's own kernel of one filter a channel runs: channels first."""
    return int(call.option("groups", 1)) > 1 and not _is_last(call.first)


def _is_last(one: Tensor) -> bool:
    return one.strides[1] == 1 and one.size(1) > 1


def _along(given: object, dim: int) -> int:
    """Return an option's number for a dimension of the image."""
    if isinstance(given, list | tuple):
        return int(given[min(dim - 2, len(given) - 1)])
    assert isinstance(given, int)
    return given


def _number(given: object) -> int:
    return max(given) if isinstance(given, list | tuple) else int(str(given))
