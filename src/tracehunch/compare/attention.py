"""Attention that one side builds by hand and the other calls as one op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.facts.sdpa import backend_of_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Use

_PRODUCTS: Final = ("bmm", "baddbmm", "baddbmm_")
_SOFTMAX: Final = ("softmax", "_softmax", "_safe_softmax")
_MASKING: Final = ("masked_fill", "masked_fill_", "tril", "tril_", "triu", "triu_", "where")


def attention_groups(
    before: Sequence[Use], after: Sequence[Use]
) -> list[tuple[Sequence[Use], Sequence[Use]]]:
    """Group a fused attention's kernels with the products, softmax and masking that it stands for."""
    if (by_hand := _steps(before)) and (fused := _fused_and_beside(after)):
        return [(by_hand, fused)]
    if (by_hand := _steps(after)) and (fused := _fused_and_beside(before)):
        return [(fused, by_hand)]
    return []


def is_fused(use: Use) -> bool:
    """Whether it is a kernel of a fused attention, on a CPU its op."""
    if use.kind == "op":
        return "_scaled_dot_product_" in use.op and backend_of_op(use.op) not in (None, "math")
    return use.identity is not None and use.identity.algorithm.startswith("attention-")


def _steps(uses: Sequence[Use]) -> list[Use]:
    """Return products, softmax and what masks as often as that; [] where there are not both of the first."""
    outside = [use for use in uses if not any("scaled_dot_product" in op for op in use.path)]
    products, softmax, masking = (
        [use for use in outside if use.op.rpartition("::")[2] in names]
        for names in (_PRODUCTS, _SOFTMAX, _MASKING)
    )
    if not products or not softmax:
        return []
    often = sum(use.per_call for use in softmax)
    return [*products, *softmax, *(use for use in masking if use.per_call >= often)]


def _fused_and_beside(uses: Sequence[Use]) -> list[Use]:
    """Return fused attention, and what the op that launches it launches, too, such as a memset."""
    roots = {use.path[:1] for use in uses if is_fused(use)} - {()}
    return [use for use in uses if is_fused(use) or use.path[:1] in roots]
