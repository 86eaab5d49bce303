"""Predicates on the call itself, and on flags."""

from collections.abc import Mapping
from typing import Any, Final

from tracehunch.predict.environment import Environment
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.predicate import Answer, Predicate

_FOUR: Final = 4


def enabled(_: SdpaCall, env: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether flags and pins leave the backend on."""
    return env.is_enabled(numbers["backend"])


def flash_built(_: SdpaCall, env: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether flash kernels are part of the build."""
    return env.flash_built


def four_dimensions(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether query, key and value have 4 dimensions each."""
    return call.four_dimensional


def no_mask(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether no mask is given."""
    return call.mask is None


def mask_without_grad(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether the mask, if any, needs no gradient."""
    return call.mask is None or not call.mask.requires_grad


def mask_fits(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether the mask, if any, is (L or 1, S or 1) or (B or 1, H or 1, L or 1, S or 1)."""
    if call.mask is None or not call.four_dimensional:
        return True
    shape = call.mask.shape
    full = (*call.q.shape[:3], call.k.shape[2])
    if len(shape) not in (2, _FOUR):
        return False
    return all(size in (1, whole) for size, whole in zip(shape[::-1], full[::-1], strict=False))


def equal_head_dims(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether query, key and value have one head dimension."""
    return call.q.shape[-1] == call.k.shape[-1] == call.v.shape[-1]


def equal_query_key_dims(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether query and key have one head dimension."""
    return call.q.shape[-1] == call.k.shape[-1]


def head_dim_at_most(call: SdpaCall, _: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether the query's head dimension is at most `most`."""
    return bool(call.q.shape[-1] <= numbers["most"])


def never(_: SdpaCall, __: Environment, ___: Mapping[str, Any]) -> Answer:
    """Refuse every call."""
    return False


def causal_square(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether a causal call has as many queries as keys."""
    return not call.is_causal or call.q.shape[-2] == call.k.shape[-2]


def equal_batch(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether query, key and value have one batch size."""
    return not call.four_dimensional or call.q.shape[0] == call.k.shape[0] == call.v.shape[0]


def heads_fit(call: SdpaCall, _: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether head counts fit together.

    `gqa`: with `enable_gqa` the heads of key and value may divide the query's; `same_kv`: then key and value
    must have as many. `implicit_mqa`: one head of key and value fits any query without the flag too.
    """
    if not call.four_dimensional:
        return True
    of_q, of_k, of_v = call.q.shape[1], call.k.shape[1], call.v.shape[1]
    if of_q == of_k == of_v or (of_k == of_v == 1 and numbers.get("implicit_mqa", False)):
        return True
    if not (numbers["gqa"] and call.enable_gqa) or (numbers["same_kv"] and of_k != of_v):
        return False
    return of_k > 0 < of_v and of_q % of_k == 0 and of_q % of_v == 0


def nonzero_lengths(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether there are queries and keys."""
    return not call.four_dimensional or (call.q.shape[-2] > 0 and call.k.shape[-2] > 0)


def last_stride_one(call: SdpaCall, _: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether the last dimension of query, key and value is contiguous.

    `relaxed`: with a head dim of 1 any stride will do. `mask`: the mask's last stride counts too;
    `mask_unsure`: or does not, in some of the versions.
    """
    if not call.four_dimensional:
        return True
    if not (numbers["relaxed"] and call.q.shape[-1] == 1) and any(
        given.stride[-1] != 1 for given in call.inputs
    ):
        return False
    mask = call.mask
    if not (numbers["mask"] and mask is not None and mask.shape and mask.stride[-1] != 1):
        return True
    return "whether this version looks at the mask's strides" if numbers.get("mask_unsure", False) else False


def no_dropout(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether there is no dropout."""
    return call.dropout <= 0.0


def dropout_in_steps(call: SdpaCall, _: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether dropout is a multiple of one in `steps`."""
    return float(call.dropout * numbers["steps"]).is_integer()


def not_deterministic(_: SdpaCall, env: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether deterministic algorithms are not demanded."""
    return not env.deterministic or env.warn_only


def batch_and_heads_at_most(call: SdpaCall, _: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether batch and heads are at most `most`."""
    return not call.four_dimensional or bool(max(call.q.shape[:2]) <= numbers["most"])


def head_dims_multiple(call: SdpaCall, _: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether both head dimensions are multiples of `of`."""
    unit: int = numbers["of"]
    return call.q.shape[-1] % unit == 0 and call.v.shape[-1] % unit == 0


def more_than_one_key(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether there is more than one key."""
    return not call.four_dimensional or call.k.shape[-2] != 1


def no_dropout_for_one_query(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether a single query has no dropout."""
    return not call.four_dimensional or call.q.shape[-2] != 1 or call.dropout == 0.0


def mask_bool_or_like_query(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether the mask, if any, is boolean or of the query's type."""
    return call.mask is None or call.mask.dtype in ("bool", call.q.dtype)


CALL_PREDICATES: Final[Mapping[str, Predicate]] = {
    "enabled": enabled,
    "never": never,
    "flash-built": flash_built,
    "four-dimensions": four_dimensions,
    "no-mask": no_mask,
    "mask-without-grad": mask_without_grad,
    "mask-fits": mask_fits,
    "equal-head-dims": equal_head_dims,
    "equal-query-key-dims": equal_query_key_dims,
    "head-dim-at-most": head_dim_at_most,
    "causal-square": causal_square,
    "equal-batch": equal_batch,
    "heads-fit": heads_fit,
    "nonzero-lengths": nonzero_lengths,
    "last-stride-one": last_stride_one,
    "no-dropout": no_dropout,
    "dropout-in-steps": dropout_in_steps,
    "not-deterministic": not_deterministic,
    "batch-and-heads-at-most": batch_and_heads_at_most,
    "head-dims-multiple": head_dims_multiple,
    "more-than-one-key": more_than_one_key,
    "no-dropout-for-one-query": no_dropout_for_one_query,
    "mask-bool-or-like-query": mask_bool_or_like_query,
}
"""Predicates by the name that tables use."""
