"""One call of SDPA as a trace recorded it: the call, and which of its arguments the trace leaves open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.tensor import TensorSpec, contiguous_strides

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Open = Literal["is_causal", "dropout", "enable_gqa", "strides", "requires_grad", "mask gradient"]
"""An argument that a trace may leave open. Offsets into storages are never recorded."""

SDPA: Final = "aten::scaled_dot_product_attention"

UNRECORDED: Final = "shapes were not recorded"
"""Why a call cannot be told, where record_shapes=True would help."""

DTYPES: Final[Mapping[str, str]] = {
    "bool": "bool",
    "unsigned char": "uint8",
    "signed char": "int8",
    "short int": "int16",
    "int": "int32",
    "long int": "int64",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
    "c10::BFloat16": "bfloat16",
    "BFloat16": "bfloat16",
    "c10::Half": "float16",
    "Half": "float16",
    "float": "float32",
    "double": "float64",
}
"""As ``Input type`` writes it -> as torch does."""

_FLOATING: Final = frozenset({"bfloat16", "float16", "float32", "float64"})
_SOME_DROPOUT: Final = 0.1
"""Stands for any dropout: one that is no multiple of 1/16, as most are not."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Where an op of `n` arguments has them; None: it has no such argument. The first are q, k and v."""

    n: tuple[int, ...]
    mask: int | None
    dropout: int
    is_causal: int
    scale: int
    enable_gqa: int | None = None
    log_sum_exp: int | None = None  # whether it keeps what a backward needs


_PLACES: Final[Mapping[str, _Places]] = {
    SDPA: _Places((6, 7, 8), mask=3, dropout=4, is_causal=5, scale=6, enable_gqa=7),
    "aten::_scaled_dot_product_attention_math": _Places((8, 9), 3, 4, 5, scale=7, enable_gqa=8),
    "aten::_scaled_dot_product_attention_math_for_mps": _Places((8,), 3, 4, 5, scale=7),
    "aten::_scaled_dot_product_flash_attention": _Places((7,), None, 3, 4, scale=6),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _Places((7,), 5, 3, 4, scale=6),
    "aten::_scaled_dot_product_efficient_attention": _Places((8,), 3, 5, 6, scale=7, log_sum_exp=4),
    "aten::_scaled_dot_product_cudnn_attention": _Places((9,), 3, 5, 6, scale=8, log_sum_exp=4),
    "aten::_scaled_dot_product_fused_attention_overrideable": _Places((8, 9), 3, 4, 5, scale=7),
}
"""Argument positions by op, as native_functions.yaml declares them (SDPA has had 8 since torch 2.5)."""

CALLS: Final = frozenset(_PLACES)
"""Ops that take q, k and v as SDPA does: SDPA itself, and those of its backends."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """`call` has the plain reading of what is `open`: no, none, contiguous."""

    call: SdpaCall
    open: tuple[Open, ...] = ()

    def alternatives(self) -> tuple[SdpaCall, ...]:
        """Every call that it may have been, the plain reading first."""
        readings = [self.call]
        for name in self.open:
            if name in _CHANGES:
                readings += [_CHANGES[name](reading) for reading in readings]
        return tuple(dict.fromkeys(readings))

    def without(self, name: Open) -> RecordedCall:
        """Take the plain reading of an open argument."""
        return replace(self, open=tuple(one for one in self.open if one != name))

    def with_grad(self, grad: bool | None) -> RecordedCall:
        """Say whether q, k and v need a gradient; None leaves that open, and that of a mask of numbers."""
        mask = self.call.mask
        if grad is not None and not grad:
            return replace(self, call=replace(self.call, grad_enabled=False))
        still: tuple[Open, ...] = () if grad else ("requires_grad",)
        if mask is not None and mask.dtype in _FLOATING:
            still = (*still, "mask gradient")
        return RecordedCall(_with_grad(self.call) if grad else self.call, (*self.open, *still))


def recorded_call(name: str, args: Mapping[str, Any]) -> RecordedCall | None:
    """Read the args of an op of `CALLS`; None where shapes or types were not recorded or make no sense.

    What a backend's own op does not have is inferred: heads that differ were grouped.
    """
    places = _PLACES.get(name)
    dims, types = args.get("Input Dims"), args.get("Input type")
    if not isinstance(dims, list) or not isinstance(types, list):
        return None
    if places is None or len(dims) not in places.n:
        return None
    strides = args.get("Input Strides")
    tensors = [_tensor(dims, types, strides, at) for at in range(3)]
    q, k, v = tensors
    if q is None or k is None or v is None or min(q.ndim, k.ndim, v.ndim) < 2:  # rows and columns
        return None
    mask = None if places.mask is None else _tensor(dims, types, strides, places.mask)
    if mask is None and _is_tensor(types, places.mask):
        return None
    stated = _Stated(args.get("Concrete Inputs"))
    call = SdpaCall(
        q=q,
        k=k,
        v=v,
        mask=mask,
        dropout=stated.number(places.dropout) or 0.0,
        is_causal=bool(stated.flag(places.is_causal)),
        enable_gqa=_grouped(q, k, v) if places.enable_gqa is None else bool(stated.flag(places.enable_gqa)),
        scale=stated.number(places.scale),
    )
    return RecordedCall(call, tuple(_left_open(places, stated, strides, len(dims))))


def unread(name: str, args: Mapping[str, Any]) -> str:
    """Say why there is no recorded call."""
    places = _PLACES.get(name)
    dims, types = args.get("Input Dims"), args.get("Input type")
    if not isinstance(dims, list) or not isinstance(types, list):
        return UNRECORDED
    if places is None or len(dims) not in places.n or len(types) < len("qkv"):
        return f"its {len(dims)} recorded arguments are not those of any version known"
    if any(str(kind) == "" for kind in types[:3]):
        return "nothing is recorded of q, k or v, as it is with nested tensors"
    odd = [str(kind) for kind in types[:3] if str(kind) not in DTYPES]
    if odd:
        return f"nothing is known of the data type {odd[0]}"
    return "what is recorded of its inputs are not the sizes of tensors"


def keeps_log_sum_exp(name: str, args: Mapping[str, Any]) -> bool | None:
    """Tell whether a backend's op kept what its backward needs; None where it does not say."""
    places, stated = _PLACES.get(name), args.get("Concrete Inputs")
    if places is None or not isinstance(stated, list) or len(stated) not in places.n:
        return None
    return _Stated(stated).flag(places.log_sum_exp)


@dataclass(frozen=True, slots=True)
class _Stated:
    """`Concrete Inputs`: the values of arguments that are no tensors, as text."""

    values: Any

    def _text(self, at: int | None) -> str:
        if at is None or not isinstance(self.values, list) or at >= len(self.values):
            return ""
        return str(self.values[at])

    def flag(self, at: int | None) -> bool | None:
        return {"True": True, "False": False}.get(self._text(at))

    def number(self, at: int) -> float | None:
        try:
            return float(self._text(at))
        except ValueError:
            return None


def _left_open(places: _Places, stated: _Stated, strides: object, n_arguments: int) -> list[Open]:
    found: list[Open] = []
    if stated.flag(places.is_causal) is None:
        found.append("is_causal")
    if stated.number(places.dropout) is None:
        found.append("dropout")
    # an SDPA without the argument, of before torch 2.5, groups nothing
    has_gqa = places.enable_gqa is not None and places.enable_gqa < n_arguments
    if has_gqa and stated.flag(places.enable_gqa) is None:
        found.append("enable_gqa")
    if not isinstance(strides, list):
        found.append("strides")
    return found


def _tensor(dims: list[Any], types: list[Any], strides: object, at: int) -> TensorSpec | None:
    dtype = DTYPES.get(str(types[at])) if at < len(types) else None
    shape = _whole_numbers(dims[at]) if at < len(dims) else None
    if dtype is None or shape is None:
        return None
    given = _whole_numbers(strides[at]) if isinstance(strides, list) and at < len(strides) else None
    if given is None or len(given) != len(shape):
        given = contiguous_strides(shape)
    return TensorSpec(shape, given, dtype)


def _is_tensor(types: list[Any], at: int | None) -> bool:
    return at is not None and at < len(types) and str(types[at]) not in ("", "Scalar")


def _whole_numbers(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(type(size) is int and size >= 0 for size in value):
        return None
    return tuple(value)


def _grouped(q: TensorSpec, k: TensorSpec, v: TensorSpec) -> bool:
    if min(q.ndim, k.ndim, v.ndim) < 3:  # no heads
        return False
    return not q.shape[-3] == k.shape[-3] == v.shape[-3]


def _with_grad(call: SdpaCall) -> SdpaCall:
    q, k, v = (replace(given, requires_grad=True) for given in call.inputs)
    return replace(call, q=q, k=k, v=v)


def _with_mask_grad(call: SdpaCall) -> SdpaCall:
    return call if call.mask is None else replace(call, mask=replace(call.mask, requires_grad=True))


_CHANGES: Final[Mapping[Open, Callable[[SdpaCall], SdpaCall]]] = {
    "is_causal": lambda call: replace(call, is_causal=True),
    "dropout": lambda call: replace(call, dropout=_SOME_DROPOUT),
    "enable_gqa": lambda call: replace(call, enable_gqa=True),
    "requires_grad": _with_grad,
    "mask gradient": _with_mask_grad,
}
"""What else an open argument may have been; other strides are too many to try."""
