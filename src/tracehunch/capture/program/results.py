"""Results of operations that torch cannot tell without a GPU, or tells as another library lays them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.capture.program.layouts import convolution_format

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def results(torch: Any) -> Mapping[Any, Callable[..., Any]]:
    """Return a function of each such operation's arguments that returns what it would."""
    aten = torch.ops.aten
    return {
        aten._cudnn_rnn_backward.default: _recurrent_backward(torch),  # noqa: SLF001  # an operator's name
        aten.convolution.default: _convolution(torch),
        aten.convolution_backward.default: _convolution_backward(torch),
    }


def otherwise(torch: Any) -> Mapping[Any, Callable[..., Any]]:
    """Return functions as `results` does, for operations that newer versions of torch know."""
    aten = torch.ops.aten
    return {
        aten._transformer_encoder_layer_fwd.default: lambda x, *_, **__: torch.empty_like(x),  # noqa: SLF001  # torch has no public way
        aten._native_multi_head_attention.default: _attention(torch),  # noqa: SLF001  # an operator's name
    }


def _attention(torch: Any) -> Callable[..., Any]:
    def made(query: Any, key: Any, _value: Any, _width: int, heads: int, *rest: Any, **named: Any) -> Any:
        names = ("mask", "need_weights", "average_attn_weights")
        asked = dict(zip(names, rest[4:], strict=False)) | named
        each = (query.shape[1], key.shape[1])
        shape = (
            (query.shape[0], *each)
            if asked.get("average_attn_weights", True)
            else (query.shape[0], heads, *each)
        )
        weights = torch.empty(shape, dtype=query.dtype, device=query.device)
        return torch.empty_like(query), weights if asked.get("need_weights", True) else None

    return made


def _recurrent_backward(torch: Any) -> Callable[..., Any]:
    def made(x: Any, weights: Any, _each: int, _flat: Any, hx: Any, cx: Any, *rest: Any) -> Any:
        like = torch.empty_like
        wanted = rest[-1]  # of input, hidden state, cell state, weights
        return (
            like(x),
            like(hx) if wanted[1] else None,
            like(cx) if cx is not None and wanted[2] else None,
            [like(one) for one in weights] if wanted[3] else [],
        )

    return made


def _convolution(torch: Any) -> Callable[..., Any]:
    """Lay a convolution out as cuDNN does; without a GPU another library is asked."""

    def made(x: Any, weight: Any, *rest: Any) -> Any:
        found = torch.ops.aten.convolution.default(x, weight, *rest)
        return _laid(torch, found, convolution_format(torch, x, weight)) if x.device.type == "cuda" else found

    return made


def _convolution_backward(torch: Any) -> Callable[..., Any]:
    def made(grad: Any, x: Any, weight: Any, *rest: Any) -> Any:
        found = torch.ops.aten.convolution_backward.default(grad, x, weight, *rest)
        if x.device.type != "cuda":
            return found
        layout = convolution_format(torch, x, weight)
        return (_laid(torch, found[0], layout), _laid(torch, found[1], layout), found[2])

    return made


def _laid(torch: Any, tensor: Any, layout: Any) -> Any:
    if tensor is None or tensor.dim() < 4 or tensor.is_contiguous(memory_format=layout):
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device, memory_format=layout)
