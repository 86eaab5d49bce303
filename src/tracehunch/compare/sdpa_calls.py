"""The calls of scaled_dot_product_attention in a scope, and in what two scopes' calls differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.predict.traced import CALLS, SDPA, RecordedCall, recorded_call, why_it_ran
from tracehunch.units import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracehunch.compare.model import Use
    from tracehunch.predict.sdpa import TensorSpec
    from tracehunch.tree import Tree

_SHORT: Final = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64"}
_HEADS: Final = -3  # dimension


@dataclass(frozen=True, slots=True)
class SdpaDiff:
    """The calls of two scopes: how many a call of each, and what differs in their inputs, in words.

    ``differences`` is None where a side did not record them; ``before`` and ``after`` are the most frequent
    inputs, None where unknown. ``why_before`` and ``why_after`` say why the backends ran, where these differ
    and the traces tell.
    """

    n_before: float
    n_after: float
    before: RecordedCall | None
    after: RecordedCall | None
    differences: tuple[str, ...] | None
    why_before: str = ""
    why_after: str = ""


def compare_sdpa(
    trees: tuple[Tree, Tree], ops: tuple[Sequence[Use], Sequence[Use]], backends: tuple[str, str]
) -> SdpaDiff | None:
    """Compare the SDPA calls among the ops of two scopes; None where neither has any."""
    calls = [[use for use in uses if is_call(use)] for uses in ops]
    n = [sum(use.per_call for use in uses) for uses in calls]
    if not any(n):
        return None
    seen = [_inputs(tree, uses) for tree, uses in zip(trees, ops, strict=True)]
    usual = [max(found, key=lambda one: (found[one], one.call.q.shape), default=None) for found in seen]
    differences = None
    if usual[0] is not None and usual[1] is not None:
        differences = () if set(seen[0]) == set(seen[1]) else tuple(differences_of(usual[0], usual[1]))
    whys = ["", ""]
    if backends[0] != backends[1]:
        whys = [
            why_it_ran(tree, [row for use in uses for row in use.rows], backend)
            for tree, uses, backend in zip(trees, calls, backends, strict=True)
        ]
    return SdpaDiff(n[0], n[1], usual[0], usual[1], differences, *whys)


def is_call(use: Use) -> bool:
    """Whether it is a call of SDPA: by the program, or of a backend's op by compiled code."""
    return use.kind == "op" and use.op in CALLS and not any(op in CALLS for op in use.path[:-1])


def _inputs(tree: Tree, uses: Iterable[Use]) -> Counter[RecordedCall]:
    """Count what the calls were given: where autocast makes SDPA call itself, what it cast."""
    asked = [use for use in uses if is_call(use) or (use.kind == "op" and use.op == SDPA)]
    deepest = {
        use.path[0]: max(len(one.path) for one in asked if one.path[0] == use.path[0]) for use in asked
    }
    found = (
        recorded_call(use.op, tree.trace.args_of(row))
        for use in asked
        if len(use.path) == deepest[use.path[0]]
        for row in use.rows
    )
    return Counter(one for one in found if one is not None)


def differences_of(before: RecordedCall, after: RecordedCall) -> Iterator[str]:
    """Say in what two calls differ; nothing of what either leaves open."""
    first, second, open_ = before.call, after.call, {*before.open, *after.open}
    if "is_causal" not in open_:
        yield from _flag("is_causal", first.is_causal, second.is_causal)
    if "enable_gqa" not in open_:
        yield from _flag("enable_gqa", first.enable_gqa, second.enable_gqa)
    yield from _mask(first.mask, second.mask)
    if "dropout" not in open_ and first.dropout != second.dropout:
        yield f"dropout_p {first.dropout:g} -> {second.dropout:g}"
    if first.q.dtype != second.q.dtype:
        yield f"query, key and value are {_dtype(second.q)}, they were {_dtype(first.q)}"
    sizes = list(_sizes(first.inputs, second.inputs))
    yield from sizes
    if not sizes and "strides" not in open_:
        yield from _layout(first.q, second.q)


def _flag(name: str, before: bool, after: bool) -> Iterator[str]:
    if before != after:
        yield f"{name} is {'there' if after else 'gone'} ({before} -> {after})"


def _mask(before: TensorSpec | None, after: TensorSpec | None) -> Iterator[str]:
    if before is None and after is not None:
        yield f"a mask is there (attn_mask: {tensor_text(after)})"
    elif before is not None and after is None:
        yield f"the mask is gone (attn_mask: {tensor_text(before)})"
    elif before is not None and after is not None and tensor_text(before) != tensor_text(after):
        yield f"the mask is {tensor_text(after)}, it was {tensor_text(before)}"


def _sizes(before: Sequence[TensorSpec], after: Sequence[TensorSpec]) -> Iterator[str]:
    """Say which sizes changed, tensors that changed alike together; of heads only that their number did."""
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[str]] = {}
    for name, one, other in zip(("query", "key", "value"), before, after, strict=True):
        if one.shape != other.shape:
            alike.setdefault((one.shape, other.shape), []).append(name)
    for (first, second), names in alike.items():
        if names == ["key", "value"] and _only_heads(first, second):
            yield f"{second[_HEADS]} key and value heads, before {first[_HEADS]}"
            continue
        verbs = ("are", "they were") if len(names) > 1 else ("is", "it was")
        yield f"{join(names)} {verbs[0]} {_product(second)}, {verbs[1]} {_product(first)}"


def _only_heads(first: Sequence[int], second: Sequence[int]) -> bool:
    if len(first) != len(second) or len(first) < -_HEADS:
        return False
    others = [
        [size for at, size in enumerate(sizes, -len(sizes)) if at != _HEADS] for sizes in (first, second)
    ]
    return others[0] == others[1]


def _layout(before: TensorSpec, after: TensorSpec) -> Iterator[str]:
    if before.stride != after.stride:
        yield f"the query's strides are {after.stride}, they were {before.stride}"


def tensor_text(tensor: TensorSpec) -> str:
    """``4 x 1 x 1024 x 1024 bool``."""
    return f"{_product(tensor.shape)} {_dtype(tensor)}"


def _dtype(tensor: TensorSpec) -> str:
    return _SHORT.get(tensor.dtype, tensor.dtype)


def _product(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes)) or "scalar"
