"""SDPA in a graph: it becomes the operation of the backend that PyTorch would pick on the GPU.

What C++ does in `scaled_dot_product_attention` (ATen/native/transformers/attention.cpp), with the dispatcher
of `predict/sdpa` in place of the one that asks a GPU.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tracehunch.capture.program.attention import pinned_backends
from tracehunch.capture.program.tensors import spec
from tracehunch.predict.sdpa import SdpaCall, predict_sdpa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.predict.environment import Environment
    from tracehunch.predict.sdpa import TensorSpec

_ALIGNED = 8


def attention(torch: Any, env: Environment) -> Callable[..., Any]:
    """Return a function like `scaled_dot_product_attention` that calls the picked backend's operation."""
    aten = torch.ops.aten

    def attend(  # noqa: PLR0917  # the signature of torch
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        given = (query, key, value, attn_mask, dropout_p, is_causal, enable_gqa, scale)
        backend = _picked(torch, env, given)
        needed = torch.is_grad_enabled() and any(one.requires_grad for one in (query, key, value))
        mask = _added(torch, attn_mask, query.dtype)
        if backend == "flash":
            return _flash(torch, query, key, value, dropout_p, is_causal, scale)
        if backend == "cudnn":
            return aten._scaled_dot_product_cudnn_attention.default(  # noqa: SLF001  # an operator's name
                query,
                key,
                value,
                mask,
                needed,
                dropout_p,
                is_causal,
                False,  # noqa: FBT003  # return_debug_mask
                scale=scale,
            )[0]
        if backend == "efficient":
            return aten._scaled_dot_product_efficient_attention.default(  # noqa: SLF001  # as above
                query,
                key,
                value,
                _padded_mask(torch, mask, query, key),
                needed,
                dropout_p,
                is_causal,
                scale=scale,
            )[0]
        return aten._scaled_dot_product_attention_math.default(  # noqa: SLF001  # as above
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]

    return attend


def run_or_traced(torch: Any, run: Callable[..., Any], traced: Callable[..., Any]) -> Callable[..., Any]:
    """Return what attends as `run` where the program runs, and as `traced` where the compiler tries a graph.

    What is tried is no call of the program, and its sizes are to stay open.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: PLC0415  # an optional dependency

    fake = torch._C._TorchDispatchModeKey.FAKE  # noqa: SLF001  # as torch asks

    def attend(*args: Any, **kwargs: Any) -> Any:
        mode = torch._C._get_dispatch_mode(fake)  # noqa: SLF001  # as above
        chosen = traced if type(mode) is FakeTensorMode else run  # that of a program is a class of ours
        return chosen(*args, **kwargs)

    return attend


@contextmanager
def recognised(attend: Callable[..., Any]) -> Iterator[None]:
    """Let Inductor's rules that recognise hand-made attention put `attend` in its place."""
    from torch._inductor.fx_passes import fuse_attention  # noqa: PLC0415  # an optional dependency

    if not hasattr(fuse_attention, "_scaled_dot_product_attention"):
        yield
        return
    with patch.object(fuse_attention, "_scaled_dot_product_attention", attend):
        yield


def _picked(torch: Any, env: Environment, given: tuple[Any, ...]) -> str:
    query, key, value, mask, dropout, causal, gqa, scale = given
    call = SdpaCall(
        _seen(query), _seen(key), _seen(value), None if mask is None else _seen(mask), dropout, causal, gqa,
        scale, grad_enabled=torch.is_grad_enabled(),
    )  # fmt: skip
    pinned = pinned_backends(torch)
    where = env if pinned is None else replace(env, pinned=pinned)
    return predict_sdpa(call, where).ran or "math"


def _seen(tensor: Any) -> TensorSpec:
    """Return a tensor with the sizes of this call where a graph is for any: to read them would fix them."""
    found = spec(tensor)
    return replace(
        found,
        shape=tuple(map(_hint, found.shape)),
        stride=tuple(map(_hint, found.stride)),
        storage_offset=_hint(found.storage_offset),
    )


def _hint(size: Any) -> int:
    hint = getattr(getattr(size, "node", None), "hint", None)
    return hint if isinstance(hint, int) else int(size)


def _added(torch: Any, mask: Any, dtype: Any) -> Any:
    """Return a mask to add: a boolean one says with minus infinity what is hidden."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    hidden = torch.full((), float("-inf"), dtype=dtype, device=mask.device)
    return torch.where(mask, torch.zeros((), dtype=dtype, device=mask.device), hidden)


def _flash(  # noqa: PLR0917  # as the operator takes them
    torch: Any, query: Any, key: Any, value: Any, dropout: float, causal: bool, scale: float | None
) -> Any:
    width = query.shape[-1]
    padded = [_padded(torch, one) for one in (query, key, value)]
    used = 1 / sqrt(int(width)) if scale is None else scale
    made = torch.ops.aten._scaled_dot_product_flash_attention.default(  # noqa: SLF001  # an operator's name
        *padded,
        dropout,
        causal,
        False,  # noqa: FBT003  # return_debug_mask
        scale=used,
    )[0]
    return made if made.shape[-1] == width else made[..., :width]


def _padded(torch: Any, tensor: Any) -> Any:
    over = tensor.shape[-1] % _ALIGNED
    return tensor if not over else torch.nn.functional.pad(tensor, (0, _ALIGNED - over))


def _padded_mask(torch: Any, mask: Any, query: Any, key: Any) -> Any:
    """Return the mask as the efficient kernel takes it: of full shape, rows a multiple of 8 apart."""
    if mask is None:
        return None
    length = key.shape[-2]
    over = length % _ALIGNED
    if over:
        mask = torch.nn.functional.pad(mask, (0, _ALIGNED - over))[..., :length]
    batch, heads, rows = query.shape[0], query.shape[1], query.shape[2]
    return mask.expand(batch, heads, rows, length)
