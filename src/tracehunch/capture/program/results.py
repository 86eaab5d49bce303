"""Results of operations that torch cannot tell without a GPU, or tells as another library lays them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.capture.program.layouts import convolution_format, view_strides

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def results(torch: Any) -> Mapping[Any, Callable[..., Any]]:
    """Return a function of each such operation's arguments that returns what it would."""
    aten = torch.ops.aten
    return {
        aten._cudnn_rnn_backward.default: _recurrent_backward(torch),  # noqa: SLF001  # an operator's name
        aten._grouped_mm.default: _grouped(torch),  # noqa: SLF001  # as above
        aten._ctc_loss.default: _ctc_loss(torch),  # noqa: SLF001  # as above
        aten._ctc_loss.Tensor: _ctc_loss(torch),  # noqa: SLF001  # as above
        aten._ctc_loss_backward.default: lambda _, scores, *__, **___: torch.empty_like(scores),  # noqa: SLF001  # as above
        aten._ctc_loss_backward.Tensor: lambda _, scores, *__, **___: torch.empty_like(scores),  # noqa: SLF001  # as above
        aten._efficient_attention_backward.default: _efficient_backward(torch),  # noqa: SLF001  # as above
        aten.view.default: _view(torch),
        aten.convolution.default: _convolution(torch),
        aten.convolution_backward.default: _convolution_backward(torch),
        **{one: _of_one_dtype(torch, one) for one in (aten.mm.default, aten.bmm.default)},
        **{one: _of_one_dtype(torch, one) for one in (aten.addmm.default, aten.baddbmm.default)},
    }


def otherwise(torch: Any) -> Mapping[Any, Callable[..., Any]]:
    """Return functions as `results` does, for operations that newer versions of torch know."""
    aten = torch.ops.aten
    return {
        aten._thnn_fused_gru_cell.default: _gru_cell(torch),  # noqa: SLF001  # as above
        aten._thnn_fused_gru_cell_backward.default: _gru_cell_backward(torch),  # noqa: SLF001  # as above
        aten.multi_margin_loss_backward.default: lambda _, x, *__, **___: torch.empty_like(x),
        aten.multilabel_margin_loss_backward.default: lambda _, x, *__, **___: torch.empty_like(x),
        aten._sample_dirichlet.default: lambda x, *_, **__: torch.empty_like(x),  # noqa: SLF001  # as above
        aten._transform_bias_rescale_qkv.default: _heads(torch),  # noqa: SLF001  # torch has no public way
        aten.fake_quantize_per_tensor_affine_cachemask.default: _rounded(torch),
        aten.fake_quantize_per_channel_affine_cachemask.default: _rounded(torch),
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: _rounded(torch),  # noqa: SLF001  # as above
        aten._masked_softmax.default: lambda x, *_, **__: torch.empty_like(x),  # noqa: SLF001  # as above
    }


def into_outputs(func: Any) -> Callable[..., Any] | None:
    """Return a function of an operation's arguments that returns those it writes to; None for none."""
    names = [one.name for one in func._schema.arguments if one.is_out]  # noqa: SLF001  # torch has no public schema
    if not names:
        return None
    return lambda *_, **given: given[names[0]] if len(names) == 1 else tuple(given[name] for name in names)


def _of_one_dtype(torch: Any, product: Any) -> Callable[..., Any]:
    """Refuse factors of several data types, as kernels do; what tells results without data takes them."""

    def made(*args: Any, **kwargs: Any) -> Any:
        first, *others = (one for one in args if torch.is_tensor(one))
        for one in others:
            if one.dtype != first.dtype:
                pair = f"{_named(first.dtype)} and {_named(one.dtype)}"
                raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {pair}")
        return product(*args, **kwargs)

    return made


def _named(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _efficient_backward(torch: Any) -> Callable[..., Any]:
    """Lay gradients out row-major, as the GPU's kernel fills them; torch tells them to be like q, k and v.

    Source: `_efficient_attention_backward` in ATen/native/transformers/cuda/attention_backward.cu.
    """

    def made(*args: Any, **kwargs: Any) -> Any:
        *found, bias = torch.ops.aten._efficient_attention_backward.default(*args, **kwargs)  # noqa: SLF001  # an operator's name
        if kwargs.get("shared_storage_dqdkdv"):
            return (*found, bias)
        return (*(torch.empty(one.shape, dtype=one.dtype, device=one.device) for one in found), bias)

    return made


def _view(torch: Any) -> Callable[..., Any]:
    """Let dimensions of size 1 have the strides that C++ gives them: memory formats are told by them too."""

    def made(x: Any, size: Any) -> Any:
        found = torch.ops.aten.view.default(x, size)
        if 1 not in found.shape or not x.numel() or x.layout != torch.strided:
            return found
        strides = view_strides(x.shape, x.stride(), found.shape)
        if strides in (None, found.stride()):
            return found
        return torch.ops.aten.as_strided.default(x, found.shape, strides, x.storage_offset())

    return made


def _rounded(torch: Any) -> Callable[..., Any]:
    """Return rounded values, and a mask of those in range."""
    return lambda x, *_, **__: (torch.empty_like(x), torch.empty_like(x, dtype=torch.bool))


def _heads(torch: Any) -> Callable[..., Any]:
    """Return queries, keys and values, each (batch, heads, length, width)."""

    def made(qkv: Any, _bias: Any, heads: int) -> Any:
        batch, length, width = qkv.shape
        shape = (3 * batch, heads, length, width // (3 * heads))
        return torch.empty(shape, dtype=qkv.dtype, device=qkv.device).split(batch)

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


def _ctc_loss(torch: Any) -> Callable[..., Any]:
    """Return a loss for each row, and what its backward asks for, as large as the longest target makes it."""

    def made(scores: Any, targets: Any, _lengths: Any, wanted: Any, *_: Any, **__: Any) -> Any:
        steps, rows = scores.shape[0], scores.shape[1] if scores.dim() == 3 else 1
        longest = targets.shape[-1] if torch.is_tensor(wanted) else max(wanted, default=0)
        place = {"dtype": scores.dtype, "device": scores.device}
        return torch.empty(rows, **place), torch.empty((rows, steps, 2 * longest + 1), **place)

    return made


def _gru_cell(torch: Any) -> Callable[..., Any]:
    def made(_input: Any, _hidden: Any, hx: Any, *_: Any) -> Any:
        kept = torch.empty((hx.shape[0], 5 * hx.shape[1]), dtype=hx.dtype, device=hx.device)
        return torch.empty_like(hx), kept

    return made


def _gru_cell_backward(torch: Any) -> Callable[..., Any]:
    """Return the gradients of both sides' gates, of the state, and of the biases if there are some."""

    def made(grad: Any, _kept: Any, has_bias: bool) -> Any:
        rows, width = grad.shape
        gates = [torch.empty((rows, 3 * width), dtype=grad.dtype, device=grad.device) for _ in range(2)]
        bias = [torch.empty(3 * width, dtype=grad.dtype, device=grad.device) for _ in range(2)]
        return (*gates, torch.empty_like(grad), *(bias if has_bias else (None, None)))

    return made


def _grouped(torch: Any) -> Callable[..., Any]:
    """Let groups be multiplied in any data type, as on a GPU; without one only bfloat16 is known."""

    def made(a: Any, b: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
        if a.dtype == torch.bfloat16:
            return torch.ops.aten._grouped_mm.default(a, b, offs, bias, out_dtype)  # noqa: SLF001  # a name
        batches = [one.shape[0] for one in (a, b) if one.dim() == 3]
        lead = batches[:1] if len(batches) == 2 else [] if batches else [offs.shape[0]]
        shape = (*lead, a.shape[-2], b.shape[-1])
        dtype = out_dtype or a.dtype
        line = 16 // dtype.itemsize
        width = -(-shape[-1] // line) * line  # every row begins where 16 bytes do
        strides = (shape[-2] * width, width, 1)[-len(shape) :]
        return torch.empty_strided(shape, strides, dtype=dtype, device=a.device)

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
