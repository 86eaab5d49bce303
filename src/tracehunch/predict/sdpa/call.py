"""SdpaCall: one call of `scaled_dot_product_attention`, as its dispatcher sees it."""

from dataclasses import dataclass
from typing import Final, Literal

from tracehunch.errors import GuessError
from tracehunch.predict.sdpa.tensor import TensorSpec, dtype_name, tensor

MaskContent = Literal["unknown", "causal", "perhaps-causal", "fully-masked-rows"]
"""What a mask is known to hold, as far as it matters: the causal triangle (or perhaps it, as the mask is as
tall as wide and one for all), or rows that see no key."""

MASKS: Final = ("bool", "bool_bcast", "same", "float32")
"""Masks by word: boolean (B, H, S, Sk), boolean (S, Sk), and additive (S, Sk) of q's type or float32."""


_LARGEST: Final = 2**63 - 1
"""Of a size in PyTorch."""


@dataclass(frozen=True, slots=True)
class SdpaCall:
    """A call's arguments without their values.

    `q` is (B, H, L, D), `k` (B, Hk, S, D), `v` (B, Hv, S, Dv) where all is as usual; nothing is assumed.
    `scale` None is 1/sqrt(D). `grad_enabled` is torch's grad mode. `nested`: q, k and v are nested tensors.
    `lower_right`: the causal triangle ends at the last query and key, not begins at the first. SDPA has no
    such argument; flash's own operation means it, and so does `torch.nn.attention.bias.causal_lower_right`.
    """

    q: TensorSpec
    k: TensorSpec
    v: TensorSpec
    mask: TensorSpec | None = None
    dropout: float = 0.0
    is_causal: bool = False
    enable_gqa: bool = False
    scale: float | None = None
    grad_enabled: bool = True
    nested: bool = False
    mask_content: MaskContent = "unknown"
    lower_right: bool = False

    @property
    def inputs(self) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        """Query, key and value."""
        return self.q, self.k, self.v

    @property
    def requires_grad(self) -> bool:
        """Whether a backward of q, k or v may follow."""
        return self.grad_enabled and (self.q.requires_grad or self.k.requires_grad or self.v.requires_grad)

    @property
    def four_dimensional(self) -> bool:
        """Whether q, k and v have 4 dimensions each."""
        return len(self.q.shape) == len(self.k.shape) == len(self.v.shape) == 4


def sdpa_call(
    batch: int,
    heads: int,
    length: int,
    head_dim: int,
    *,
    kv_heads: int | None = None,
    keys: int | None = None,
    value_dim: int | None = None,
    dtype: str = "bfloat16",
    layout: str = "bhsd",
    mask: str | tuple[int, ...] | TensorSpec | None = None,
    mask_dtype: str = "bool",
    dropout: float = 0.0,
    is_causal: bool = False,
    enable_gqa: bool = False,
    scale: float | None = None,
    requires_grad: bool = False,
    mask_content: MaskContent = "unknown",
) -> SdpaCall:
    """Make a call from sizes: `keys` (default `length`) is S, `layout` one of `tensor.LAYOUTS`.

    `mask` is a word of `MASKS`, a shape (of `mask_dtype`, contiguous) or a tensor.

    Raises:
        GuessError: a size or dropout that cannot be, or a layout, mask or data type that is not known.

    """
    dtype = dtype_name(dtype)
    kv_heads = heads if kv_heads is None else kv_heads
    keys = length if keys is None else keys
    value_dim = head_dim if value_dim is None else value_dim
    sizes = {"batch": batch, "heads": heads, "length": length, "head_dim": head_dim}
    sizes |= {"kv_heads": kv_heads, "keys": keys, "value_dim": value_dim}
    for name, size in sizes.items():
        _check_size(name, size)
    if not 0 <= dropout <= 1:
        raise GuessError(f"dropout is {dropout}", "it is a probability", "give 0 to 1")
    return SdpaCall(
        q=tensor((batch, heads, length, head_dim), dtype, layout, requires_grad=requires_grad),
        k=tensor((batch, kv_heads, keys, head_dim), dtype, layout, requires_grad=requires_grad),
        v=tensor((batch, kv_heads, keys, value_dim), dtype, layout, requires_grad=requires_grad),
        mask=_mask(mask, (batch, heads, length, keys), dtype, mask_dtype),
        dropout=dropout,
        is_causal=is_causal,
        enable_gqa=enable_gqa,
        scale=scale,
        mask_content=mask_content,
    )


def _check_size(name: str, size: int) -> None:
    if not 0 <= size <= _LARGEST:
        raise GuessError(f"{name} is {size}", "a size is 0 to 2^63 - 1", f"give {name} another value")


def _mask(
    mask: str | tuple[int, ...] | TensorSpec | None,
    full: tuple[int, int, int, int],
    dtype: str,
    mask_dtype: str,
) -> TensorSpec | None:
    if mask is None or isinstance(mask, TensorSpec):
        return mask
    if isinstance(mask, tuple):
        for size in mask:
            _check_size("a size of the mask", size)
        return tensor(mask, mask_dtype)
    *_, length, keys = full
    if mask == "bool":
        return tensor(full, "bool")
    if mask == "bool_bcast":
        return tensor((length, keys), "bool")
    if mask == "same":
        return tensor((length, keys), dtype)
    if mask == "float32":
        return tensor((length, keys), "float32")
    raise GuessError(f"mask {mask!r} is not known", "", f"use one of {', '.join(MASKS)}, or a shape")
