"""The ops of fused attention, of all backends, forward and backward, as ATen calls them.

A schema is where each op has its tensors, and how it says that it is causal. FLOPs are those of the pairs
that a causal mask leaves, since fused kernels skip the others; a mask that is passed as a tensor skips none.
Sources: native_functions.yaml of PyTorch 2.1 to 2.13.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from tracehunch.errors import GuessError
from tracehunch.facts.work.attention import AttentionDims, AttentionWork, Diagonal, attention_work
from tracehunch.facts.work.inputs import Call, NotRecorded, Operand
from tracehunch.facts.work.work import Work, moved

_MASK_TYPES: Final[Mapping[int, Diagonal]] = {0: "none", 1: "upper-left", 2: "lower-right"}
"""``custom_mask_type`` of the memory-efficient kernels."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Positions of the arguments of one op; -1 for one that it does not have.

    ``layout`` orders the dimensions of q, k and v: batch, heads, sequence, depth. ``causal`` is the position
    of a flag, or with ``mask_type`` of that number; ``diagonal`` is what a causal flag means. ``lengths`` are
    arguments that, where they are given, make sequences or windows of lengths that were not recorded.
    """

    layout: Literal["bhsd", "bshd"]
    causal: int
    n_inputs: tuple[int, ...]
    query: int = 0
    bias: int = -1
    kept: int = -1  # the flag that asks for the log-sum-exp
    lengths: tuple[int, ...] = ()
    windows: tuple[int, ...] = ()
    mask_type: bool = False
    diagonal: Diagonal = "upper-left"
    backward: bool = False


_SCHEMAS: Final[Mapping[str, tuple[Schema, ...]]] = {
    "_scaled_dot_product_flash_attention": (
        Schema("bhsd", 4, (7,)),
        Schema("bhsd", 7, (10,)),  # quantized
    ),
    "_flash_attention_forward": (
        Schema("bshd", 8, (11, 15, 17), lengths=(3, 4, 13, 15), windows=(11, 12), diagonal="lower-right"),
        Schema("bshd", 8, (18,), lengths=(3, 4, 16), windows=(14, 15), diagonal="lower-right"),  # quantized
    ),
    "_flash_attention_forward_no_dropout_inplace": (
        Schema(
            "bshd", 9, (18,), query=1, lengths=(4, 5, 14, 16), windows=(12, 13), diagonal="lower-right",
        ),
    ),
    "_scaled_dot_product_efficient_attention": (Schema("bhsd", 6, (8,), bias=3, kept=4),),
    "_efficient_attention_forward": (
        Schema("bshd", 9, (14,), bias=3, kept=10, lengths=(4, 5, 12), windows=(13,), mask_type=True),
        Schema("bshd", 8, (13,), bias=3, kept=9, lengths=(4, 5, 11, 12), mask_type=True),
    ),
    "_scaled_dot_product_cudnn_attention": (
        Schema("bhsd", 6, (9,), bias=3, kept=4),
        Schema("bhsd", 4, (7,)),
    ),
    "_cudnn_attention_forward": (Schema("bhsd", 10, (13,), bias=3, kept=8, lengths=(4, 5)),),
    "_scaled_dot_product_fused_attention_overrideable": (
        Schema("bhsd", 5, (8, 9), bias=3),
    ),
    "_scaled_dot_product_flash_attention_for_cpu": (Schema("bhsd", 4, (7,), bias=5),),
    "_scaled_dot_product_flash_attention_backward": (
        Schema("bhsd", 11, (15,), query=1, lengths=(6, 7), backward=True),
    ),
    "_flash_attention_backward": (
        Schema(
            "bshd", 11, (15, 17), query=1, lengths=(6, 7), windows=(15, 16), diagonal="lower-right",
            backward=True,
        ),
    ),
    "_scaled_dot_product_efficient_attention_backward": (
        Schema("bhsd", 11, (13,), query=1, bias=4, backward=True),
    ),
    "_efficient_attention_backward": (
        Schema(
            "bshd", 14, (18, 19, 20), query=1, bias=4, lengths=(6, 7), windows=(18,), mask_type=True,
            backward=True,
        ),
    ),
    "_scaled_dot_product_cudnn_attention_backward": (
        Schema("bhsd", 14, (16,), query=1, bias=8, lengths=(9, 10), backward=True),
    ),
    "_cudnn_attention_backward": (
        Schema("bhsd", 14, (16,), query=1, bias=8, lengths=(9, 10), backward=True),
    ),
    "_scaled_dot_product_fused_attention_overrideable_backward": (
        Schema("bhsd", 13, (17,), query=1, bias=4, lengths=(8, 9), backward=True),
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (
        Schema("bhsd", 7, (10,), query=1, bias=8, backward=True),
    ),
}  # fmt: skip


def formulas() -> dict[str, Callable[[Call], Work]]:
    """Return op -> the formula of its work."""
    return {name: _formula(schemas) for name, schemas in _SCHEMAS.items()}


def _formula(schemas: tuple[Schema, ...]) -> Callable[[Call], Work]:
    def work(call: Call) -> Work:
        schema = next((one for one in schemas if len(call.inputs) in one.n_inputs), None)
        if schema is None:
            raise NotRecorded(
                f"{call.name} takes {len(call.inputs)} arguments, in an order that is not known"
            )
        return _work(call, schema)

    return work


def _work(call: Call, schema: Schema) -> Work:
    if any(call.optional(at) is not None for at in schema.lengths):
        raise NotRecorded(f"{call.name} packs sequences of lengths that are not in the trace")
    q, k, v = (call.tensor(schema.query + at) for at in range(3))
    dims = _dims(q, k, v, schema)
    training = schema.kept >= 0 and call.value(schema.kept) == "True"
    count = _counter(dims, q.itemsize, training=training, backward=schema.backward)
    expanded = sum(one.nbytes - one.stored_bytes for one in (q, k, v))
    bias = moved(call.optional(schema.bias)) if schema.bias >= 0 else 0
    diagonal = _diagonal(call, schema)
    flops = None if diagonal is None else count(diagonal).flops
    return Work(flops, count("none").least_bytes - expanded + bias, q.dtype)


def _counter(
    dims: AttentionDims, element_bytes: int, *, training: bool, backward: bool
) -> Callable[[Diagonal], AttentionWork]:
    def count(diagonal: Diagonal) -> AttentionWork:
        return attention_work(dims, element_bytes, diagonal, training=training, backward=backward)

    return count


def _dims(q: Operand, k: Operand, v: Operand, schema: Schema) -> AttentionDims:
    if any(len(one.shape) != 4 for one in (q, k, v)):
        raise NotRecorded("query, key and value have other dimensions than batch, heads, length and depth")
    heads, sequence = (1, 2) if schema.layout == "bhsd" else (2, 1)
    try:
        return AttentionDims(
            batch=q.shape[0],
            heads=q.shape[heads],
            queries=q.shape[sequence],
            keys=k.shape[sequence],
            head_dim=q.shape[3],
            kv_heads=k.shape[heads],
            value_dim=v.shape[3],
        )
    except GuessError as error:
        raise NotRecorded(error.what) from None


def _diagonal(call: Call, schema: Schema) -> Diagonal | None:
    """Return the causal mask; None where it cannot be told, as for a window."""
    if any(call.value(at) not in ("", "-1", "None") for at in schema.windows):
        return None
    value = call.value(schema.causal)
    if schema.mask_type:
        return _MASK_TYPES.get(int(value)) if value.isascii() and value.isdigit() else None
    return {"True": schema.diagonal, "False": "none"}.get(value)
