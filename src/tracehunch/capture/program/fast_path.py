"""The fast path of `nn.MultiheadAttention` and `nn.TransformerEncoderLayer`: what a GPU does in inference.

Sources: `native_multi_head_attention_cuda` in ATen/native/transformers/cuda/attention.cu, and transformer.cpp
and attention.cpp beside it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.program.attention import pinned_backends
from tracehunch.capture.program.tensors import spec
from tracehunch.capture.program.unwatched import folds, product
from tracehunch.predict.sdpa import SdpaCall, predict_sdpa

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracehunch.predict.environment import Environment

_WIDTHS: Final = 8
"""Heads of a multiple of so many go to SDPA."""


def fast_path(torch: Any, env: Environment) -> Mapping[str, Callable[..., Any]]:
    """Return what is done on the GPU in the place of both operations, by name."""
    heads = _heads(torch, env)
    return {"_native_multi_head_attention": heads, "_transformer_encoder_layer_fwd": _layer(torch, heads)}


def _heads(torch: Any, env: Environment) -> Callable[..., Any]:
    linear = torch.nn.functional.linear

    def heads(  # noqa: PLR0917  # as the schema has them
        query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any, qkv_bias: Any,
        proj_weight: Any, proj_bias: Any, mask: Any = None, need_weights: bool = True,
        average_attn_weights: bool = True, mask_type: int | None = None,
    ) -> Any:  # fmt: skip
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        qkv_weight, qkv_bias, proj_weight, proj_bias = (_plain(torch, one) for one in weights)
        itself = query is key and key is value
        plain = itself and mask is None and not need_weights and (embed_dim // num_head) % _WIDTHS == 0
        if plain and _fused(torch, env, _split(query, num_head)):
            q, k, v = (_split(one, num_head) for one in linear(query, qkv_weight, qkv_bias).chunk(3, -1))
            made = torch.nn.functional.scaled_dot_product_attention(q, k, v)
            rows = made.transpose(1, 2).reshape(query.shape[0], -1, embed_dim)
            return linear(rows, proj_weight, proj_bias), None
        qkv = _projected(torch, (query, key, value), qkv_weight)
        if qkv.numel() == 0:
            return torch.empty_like(query), None
        made, scores = _by_hand(torch, qkv, qkv_bias, num_head, (mask, mask_type))
        rows = made.permute(0, 2, 1, 3).contiguous().view(-1, embed_dim)
        out = linear(rows, proj_weight, proj_bias).view(*query.shape[:2], -1)
        if not need_weights:
            return out, None
        return out, scores.sum(1).div_(num_head) if average_attn_weights else scores

    return heads


def _plain(torch: Any, weight: Any) -> Any:
    """Return a weight that requires no gradient, as below autograd; in inference mode all of it is there."""
    return weight if torch.is_inference_mode_enabled() else weight.detach()


def _split(one: Any, heads: int) -> Any:
    return one.view(one.shape[0], -1, heads, one.shape[-1] // heads).transpose(1, 2)


def _fused(torch: Any, env: Environment, heads: Any) -> bool:
    """Whether SDPA would take a kernel of its own for the inputs as they are before they are projected."""
    one = spec(heads)
    pinned = pinned_backends(torch)
    call = SdpaCall(one, one, one, grad_enabled=torch.is_grad_enabled())
    return predict_sdpa(call, replace(env, pinned=pinned or env.pinned)).ran not in ("math", "error")


def _projected(torch: Any, inputs: tuple[Any, Any, Any], weight: Any) -> Any:
    """Return queries, keys and values side by side, without their bias."""
    query, key, value = inputs
    if query is key and key is value:
        return product(query, weight) if folds(torch, weight) else torch.matmul(query, weight.t())
    if key is value:
        width = query.shape[-1]
        parts = zip((query, key), weight.split((width, 2 * width)), strict=True)
    else:
        parts = zip(inputs, weight.chunk(3), strict=True)
    return torch.cat([torch.matmul(one, part.t()) for one, part in parts], 2)


def _by_hand(torch: Any, qkv: Any, bias: Any, heads: int, masked: tuple[Any, int | None]) -> tuple[Any, Any]:
    """Return what heads attend to, and how much: products of batches around a softmax."""
    q, k, v = torch._transform_bias_rescale_qkv(qkv, bias, heads)  # noqa: SLF001  # an operator's name
    (batch, _, length, _), (mask, mask_type) = q.shape, masked
    scores = torch.bmm(q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2)).view(batch, heads, length, length)
    if mask is None:
        weights = torch._softmax(scores, -1, False)  # noqa: FBT003, SLF001  # half_to_float; as above
    else:
        weights = torch._masked_softmax(scores, mask.to(torch.bool), 3, mask_type)  # noqa: SLF001  # as above
    return torch.bmm(weights.flatten(0, 1), v.flatten(0, 1)).view(q.shape), weights


def _layer(torch: Any, heads: Callable[..., Any]) -> Callable[..., Any]:
    functional = torch.nn.functional

    def layer(  # noqa: PLR0917  # as the schema has them
        src: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any,
        proj_bias: Any, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Any, norm_bias_1: Any,
        norm_weight_2: Any, norm_bias_2: Any, ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any,
        ffn_bias_2: Any, mask: Any = None, mask_type: int | None = None,
    ) -> Any:  # fmt: skip
        if src.numel() == 0:
            return src.clone()

        def first(x: Any) -> Any:
            return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

        def second(x: Any) -> Any:
            return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

        def fed(x: Any) -> Any:
            rows = x.view(-1, embed_dim)
            made = torch._addmm_activation(ffn_bias_1, rows, ffn_weight_1.t(), use_gelu=use_gelu)  # noqa: SLF001  # an operator's name
            return torch.addmm(ffn_bias_2, made, ffn_weight_2.t()).view(*x.shape[:2], -1)

        weights = (embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False)
        x = first(src) if norm_first else src
        x = heads(x, x, x, *weights, mask_type=mask_type)[0].add_(src)
        x = x if norm_first else first(x)
        made = fed(second(x) if norm_first else x).add_(x)
        return made if norm_first else second(made)

    return layer
