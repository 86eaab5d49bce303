"""Ops that are recorded whole and call others, one of them SDPA: what they are made of."""

from dataclasses import replace
from typing import Final

from tracehunch.predict.ops.tensor import Tensor
from tracehunch.predict.program.calls import SDPA, OpCall
from tracehunch.predict.sdpa import SdpaCall, TensorSpec
from tracehunch.predict.sdpa.tensor import dtype_name

_LAYER: Final = "aten::_transformer_encoder_layer_fwd"
_HEADS: Final = "aten::_native_multi_head_attention"
_INPUTS: Final = 7
"""Query, key and value, weights and biases of two projections."""
_TENSORS: Final = 13
"""Input, weights and biases of attention's two projections, of two norms and of two linear layers."""


def parts_of(call: OpCall) -> tuple[OpCall, ...]:
    """Return the calls that an op makes, none where it is one of its own or they are not known.

    `nn.TransformerEncoderLayer` in inference, without a mask, is one op; so is `nn.MultiheadAttention`.
    """
    if call.op == _HEADS:
        return _heads_of(call)
    if call.op != _LAYER or len(call.tensors) != _TENSORS or len(call.tensors[0].shape) != 3:
        return ()
    one, *weights = call.tensors
    attention, linear, norms = weights[:4], weights[8:], weights[4:8]
    batch, length, width = one.shape
    flat = Tensor((batch * length, width), one.dtype, (width, 1))
    inner = linear[0].shape[0]
    wide = Tensor((batch * length, inner), one.dtype, (inner, 1))
    projected = [
        _addmm(call, flat, attention[0], attention[1]),
        _attention(call, one),
        _addmm(call, flat, attention[2], attention[3]),
        _on(call, "aten::add_", one, one),
    ]
    fed = [
        _addmm(call, flat, linear[0], linear[1], "aten::_addmm_activation"),
        _addmm(call, wide, linear[2], linear[3]),
        _on(call, "aten::add_", one, one),
    ]
    first, second = (_on(call, "aten::native_layer_norm", one, *norms[at : at + 2]) for at in (0, 2))
    if call.options.get("norm_first"):
        return (first, *projected, second, *fed)
    return (*projected, first, *fed, second)


def _heads_of(call: OpCall) -> tuple[OpCall, ...]:
    """Return what attention of a sequence to itself calls where its weights are not asked for.

    Source: `native_multi_head_attention_cuda` in ATen/native/transformers/cuda/attention.cu, which takes SDPA
    for heads of a multiple of eight.
    """
    one, *others = call.tensors
    heads = int(call.options.get("num_head", 1))
    plain = len(call.tensors) == _INPUTS and len(one.shape) == 3 and one == others[0] == others[1]
    if not plain or call.options.get("need_weights") is not False or one.shape[-1] // heads % 8:
        return ()
    batch, length, width = one.shape
    flat = Tensor((batch * length, width), one.dtype, (width, 1))
    whole = replace(call, options={"num_heads": heads})
    return (
        _addmm(call, flat, others[2], others[3]),
        _attention(whole, one),
        _addmm(call, flat, others[4], others[5]),
    )


def _addmm(call: OpCall, rows: Tensor, weight: Tensor, bias: Tensor, op: str = "aten::addmm") -> OpCall:
    return _on(call, op, bias, rows, weight.transposed())


def _on(call: OpCall, op: str, *tensors: Tensor) -> OpCall:
    return replace(
        call,
        op=op,
        tensors=tensors,
        devices=("cuda",) * len(tensors),
        options={},
        outputs=(),
        output_devices=(),
    )


def _attention(call: OpCall, one: Tensor) -> OpCall:
    """Return SDPA of heads that lie side by side in one projection of queries, keys and values."""
    batch, length, width = one.shape
    heads = int(call.options.get("num_heads", 1))
    strides = (length * 3 * width, width // heads, 3 * width, 1)
    head = TensorSpec((batch, heads, length, width // heads), strides, dtype_name(one.dtype))
    inputs = (head, replace(head, storage_offset=width), replace(head, storage_offset=2 * width))
    return replace(call, op=SDPA, sdpa=SdpaCall(*inputs, grad_enabled=False), options={})
