"""Gradients of convolutions: cuDNN's kernels for those of the input and of the weight, a sum for the bias's.

How many kernels each takes is told by fitted trees (`convolution.toml`), as for the forward; of gradients
that
the trees did not see three in four of the input's and two in three of the weight's were exact.
"""

from dataclasses import replace
from typing import Final

from tracehunch.facts.work import convolution_flops
from tracehunch.predict.ops.convolution import as_images, family, features, laid_out_alike, output, trees
from tracehunch.predict.ops.reductions import reduction
from tracehunch.predict.ops.steps import Call, Steps, joined, kernel, memset, under, unknown
from tracehunch.predict.ops.tensor import Tensor
from tracehunch.predict.ops.trees import Outcome, outcome_of

_KILO: Final = 1000
_ALL: Final = (True, True, True)


def conv_backward(call: Call) -> Steps:
    """Derive a convolution: (gradient, input, weight); `output_mask` says which gradients are asked for."""
    if len(call.tensors) < 3:  # gradient, input, weight
        return unknown("the sizes of the convolution were not recorded")
    packed, call = as_images(call)
    grad, one, weight = call.tensors[:3]
    if len(one.shape) != 4 or call.option("transposed"):  # batch, channels, height, width
        return unknown("gradients were looked at for convolutions of images and sequences, not transposed")
    forward = replace(call, name="convolution", tensors=(one, weight))
    name = family(forward, transposed=False)
    if not name:
        return unknown("convolutions in groups were looked at where each channel is one")
    before, one, weight = laid_out_alike(one, weight)
    forward = replace(forward, tensors=(one, weight))
    asked = features(forward, output(forward, transposed=False))
    of_input, of_weight, of_bias = call.option("output_mask") or _ALL
    parts: list[Steps] = [packed, before]
    for wanted, of in ((of_input, "input"), (of_weight, "weight")):
        if wanted:
            told = outcome_of(trees()[f"{name}_{of}"], asked)
            parts.append(_derived(grad, one, weight, told, of))
    if of_bias:
        parts.append(under("aten::sum", reduction(grad, (0, 2, 3), call.sms)))
    return joined(parts)


def _derived(grad: Tensor, one: Tensor, weight: Tensor, told: Outcome, of: str) -> Steps:
    """Return one gradient with so many kernels: all but one turn, pad or add up."""
    flops = convolution_flops(grad.numel, weight.numel, weight.size(0))
    given, made = (weight, one) if of == "input" else (one, weight)
    each = "conv_each" if weight.size(1) == 1 else f"conv_{of}"
    moved = grad.nbytes + given.nbytes + made.nbytes
    run = kernel(
        "", "conv-backward", each, moved, flops=flops, dtype=one.dtype, items=flops // _KILO, library="cudnn"
    )
    turned = [
        kernel("", "layout-transform", "strided", 2 * part.nbytes, items=part.numel, library="cudnn")
        for part in (grad, given, made)
    ]
    extra = (turned * 2)[: max(told.kernels - 1, 0)]
    return joined([*[memset()] * told.memsets, *extra[:2], run, *extra[2:]])
