"""The calls of scaled_dot_product_attention in a scope, and in what two scopes' calls differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.compare.inputs import Tensor, inputs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracehunch.compare.model import Use
    from tracehunch.trace.model import Trace
    from tracehunch.tree import Tree

SDPA: Final = "aten::scaled_dot_product_attention"
_INPUTS: Final = 8  # since torch 2.5: q, k, v, mask, dropout, is_causal, scale, enable_gqa
_MASK, _DROPOUT, _CAUSAL, _GQA = 3, 4, 5, 7


@dataclass(frozen=True, slots=True)
class SdpaInputs:
    """What one call was given."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    dropout: float
    is_causal: bool
    enable_gqa: bool


@dataclass(frozen=True, slots=True)
class SdpaDiff:
    """The calls of two scopes: how many a call of each, and what differs in their inputs, in words.

    ``differences`` is None where a side did not record them; ``before`` and ``after`` are the most frequent
    inputs, None where unknown.
    """

    n_before: float
    n_after: float
    before: SdpaInputs | None
    after: SdpaInputs | None
    differences: tuple[str, ...] | None


def compare_sdpa(before: tuple[Tree, Sequence[Use]], after: tuple[Tree, Sequence[Use]]) -> SdpaDiff | None:
    """Compare the SDPA calls among the ops of two scopes; None where neither has any."""
    first, second = (_calls(tree, uses) for tree, uses in (before, after))
    n = [sum(use.per_call for use in uses if _is_sdpa(use)) for _, uses in (before, after)]
    if not any(n):
        return None
    usual = [max(seen, key=lambda one: (seen[one], one.q.shape), default=None) for seen in (first, second)]
    differences = None
    if usual[0] is not None and usual[1] is not None:
        differences = () if set(first) == set(second) else tuple(_differences(usual[0], usual[1]))
    return SdpaDiff(n[0], n[1], usual[0], usual[1], differences)


def sdpa_inputs(tree: Tree, row: int) -> SdpaInputs | None:
    """Read the inputs of one call; None where they were not recorded."""
    trace = tree.trace
    tensors = inputs_of(tree, row)
    stated = trace.args_of(row).get("Concrete Inputs")
    if not isinstance(stated, list) or len(stated) != _INPUTS or len(tensors) < 3:  # q, k and v
        return None
    return SdpaInputs(
        q=tensors[0],
        k=tensors[1],
        v=tensors[2],
        mask=tensors[3] if len(tensors) > 3 and _has_mask(trace, row) else None,
        dropout=_number(stated[_DROPOUT]),
        is_causal=stated[_CAUSAL] == "True",
        enable_gqa=stated[_GQA] == "True",
    )


def _is_sdpa(use: Use) -> bool:
    return use.kind == "op" and use.op == SDPA


def _calls(tree: Tree, uses: Iterable[Use]) -> Counter[SdpaInputs]:
    rows = [row for use in uses if _is_sdpa(use) for row in use.rows]
    found = (sdpa_inputs(tree, row) for row in rows)
    return Counter(one for one in found if one is not None)


def _has_mask(trace: Trace, row: int) -> bool:
    types = trace.args_of(row).get("Input type")
    return isinstance(types, list) and len(types) > _MASK and types[_MASK] not in ("", "Scalar")


def _number(text: object) -> float:
    try:
        return float(str(text))
    except ValueError:
        return 0.0


def _differences(before: SdpaInputs, after: SdpaInputs) -> Iterable[str]:
    yield from _flag("is_causal", before.is_causal, after.is_causal)
    yield from _flag("enable_gqa", before.enable_gqa, after.enable_gqa)
    yield from _mask(before.mask, after.mask)
    if before.dropout != after.dropout:
        yield f"dropout_p {before.dropout:g} -> {after.dropout:g}"
    if before.q.dtype != after.q.dtype:
        yield f"the query is {after.q.dtype}, it was {before.q.dtype}"
    if before.q.shape != after.q.shape:
        yield f"the query is {_sizes(after.q)}, it was {_sizes(before.q)}"
    if before.k.shape != after.k.shape:
        yield _keys(before.k, after.k)


def _flag(name: str, before: bool, after: bool) -> Iterable[str]:
    if before != after:
        yield f"{name} is {'there' if after else 'gone'} ({before} -> {after})"


def _mask(before: Tensor | None, after: Tensor | None) -> Iterable[str]:
    if before is None and after is not None:
        yield f"a mask is there (attn_mask: {after})"
    elif before is not None and after is None:
        yield f"the mask is gone (attn_mask: {before})"
    elif before is not None and after is not None and str(before) != str(after):
        yield f"the mask is {after}, it was {before}"


def _keys(before: Tensor, after: Tensor) -> str:
    """Name the heads where they are all that differs."""
    first, second = before.shape, after.shape
    is_heads = len(first) == len(second) == 4 and first[0] == second[0] and first[2:] == second[2:]
    if is_heads:
        return f"{second[1]} key and value heads, before {first[1]}"
    return f"the key is {_sizes(after)}, it was {_sizes(before)}"


def _sizes(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape))
