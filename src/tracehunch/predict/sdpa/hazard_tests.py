"""What recognises hazards.

A test takes the call, the environment, the call's prediction there, and the entry's numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any, Final

from tracehunch.predict.environment import Backend, Environment
from tracehunch.predict.releases import releases
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.prediction import SdpaPrediction
from tracehunch.predict.sdpa.priority import priority

Test = Callable[[SdpaCall, Environment, SdpaPrediction, Mapping[str, Any]], bool]

_FUSED: Final[tuple[Backend, ...]] = ("flash", "efficient", "cudnn")
_HOPPER: Final = 9
_BLACKWELL: Final = 10


def _major(env: Environment) -> int:
    return -1 if env.compute_capability is None else env.compute_capability[0]


def _refused(prediction: SdpaPrediction, backend: Backend, *checks: str) -> bool:
    """Tell whether a backend refuses the call on these grounds and no other."""
    answer = prediction.answer(backend)
    grounds = set() if answer is None else {rejection.check for rejection in answer.rejections}
    return bool(grounds) and grounds <= set(checks)


def _heads(call: SdpaCall) -> tuple[int, int]:
    return (call.q.shape[1], call.k.shape[1]) if call.four_dimensional else (1, 1)


def cudnn_backward_nan(
    call: SdpaCall, env: Environment, picked: SdpaPrediction, _: Mapping[str, Any]
) -> bool:
    """Find cuDNN on Hopper, a mask, a backward, and a length that leaves 64 over a multiple of 128."""
    return (
        picked.chosen == "cudnn"
        and call.mask is not None
        and call.requires_grad
        and _major(env) == _HOPPER
        and call.q.shape[-2] % 128 == 64  # the report's lengths
    )


def cudnn_training(call: SdpaCall, _: Environment, picked: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find cuDNN, or perhaps it, and a backward."""
    return call.requires_grad and (picked.chosen == "cudnn" or _perhaps_first(picked))


def _perhaps_first(picked: SdpaPrediction) -> bool:
    answer = picked.answer("cudnn")
    return picked.chosen is None and answer is not None and answer.accepted is not False


def cudnn_old_unaligned_length(
    call: SdpaCall, env: Environment, picked: SdpaPrediction, numbers: Mapping[str, Any]
) -> bool:
    """Find an old cuDNN and a length that is no multiple of 128."""
    if picked.chosen != "cudnn" or env.cudnn is None or env.cudnn >= numbers["before_cudnn"]:
        return False
    return any(length % numbers["multiple"] for length in (call.q.shape[-2], call.k.shape[-2]))


def cudnn_few_kv_heads(
    call: SdpaCall, env: Environment, picked: SdpaPrediction, numbers: Mapping[str, Any]
) -> bool:
    """Find cuDNN on Blackwell, grouped heads, and fewer key/value heads than `below`."""
    heads, kv_heads = _heads(call)
    return picked.chosen == "cudnn" and _major(env) == _BLACKWELL and kv_heads < min(heads, numbers["below"])


def cudnn_expanded_query(
    _: SdpaCall, __: Environment, picked: SdpaPrediction, ___: Mapping[str, Any]
) -> bool:
    """Find where cuDNN raises for the layout of its result."""
    return picked.chosen == "cudnn" and picked.raises is not None and "output_names" in picked.raises


def cudnn_stride_copies(
    call: SdpaCall, _: Environment, picked: SdpaPrediction, __: Mapping[str, Any]
) -> bool:
    """Find cuDNN, a backward, and inputs whose dimensions lie in different orders."""
    if picked.chosen != "cudnn" or not call.requires_grad or picked.raises is not None:
        return False
    orders = {_order(given.shape, given.stride) for given in call.inputs}
    return len(orders) > 1


def _order(shape: tuple[int, ...], stride: tuple[int, ...]) -> tuple[int, ...]:
    """List dimensions from outermost to innermost; those of size 1 lie anywhere."""
    return tuple(sorted((at for at, size in enumerate(shape) if size > 1), key=lambda at: -stride[at]))


def cudnn_plan_per_shape(
    call: SdpaCall, env: Environment, picked: SdpaPrediction, _: Mapping[str, Any]
) -> bool:
    """Find cuDNN without the setting that avoids new plans."""
    avoided = env.env.get("TORCH_CUDNN_SDPA_AVOID_RECOMPILE") == "1" and call.mask is None
    return picked.chosen == "cudnn" and not avoided


def cudnn_off_hopper(_: SdpaCall, env: Environment, picked: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find cuDNN on a GPU older than Hopper."""
    return picked.chosen == "cudnn" and 0 < _major(env) < _HOPPER


def cudnn_runtime_version(_: SdpaCall, env: Environment, __: SdpaPrediction, ___: Mapping[str, Any]) -> bool:
    """Find another cuDNN than the wheel's, and another order for it."""
    release = releases()[env.torch]
    wheels = release.cudnn_of(env.cuda)
    if env.device != "cuda" or env.cudnn is None or wheels is None:
        return False
    own = replace(env, cudnn=wheels)
    return priority(env, release).order != priority(own, release).order


def dead_variable(_: SdpaCall, env: Environment, __: SdpaPrediction, numbers: Mapping[str, Any]) -> bool:
    """Find where a variable is set that no longer does anything."""
    return env.device == "cuda" and any(name in env.env for name in numbers["variables"])


def causal_one_query(call: SdpaCall, _: Environment, picked: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find a causal call with one query and several keys: it sees the first key alone."""
    first = call.is_causal and not call.lower_right
    return first and call.q.shape[-2] == 1 < call.k.shape[-2] and picked.raises is None


def causal_lengths(call: SdpaCall, _: Environment, picked: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find a causal call of several queries with more or fewer keys."""
    first = call.is_causal and not call.lower_right
    return first and 1 < call.q.shape[-2] != call.k.shape[-2] and picked.raises is None


def fully_masked_rows(call: SdpaCall, _: Environment, __: SdpaPrediction, ___: Mapping[str, Any]) -> bool:
    """Find where the mask is known to have rows without a key, or the triangle must."""
    if call.lower_right and call.q.shape[-2] > call.k.shape[-2]:
        return True
    return call.mask is not None and call.mask_content == "fully-masked-rows"


def explicit_causal_mask(call: SdpaCall, env: Environment, _: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find where the mask is known to be the causal triangle, and there are kernels that know it without."""
    return call.mask is not None and call.mask_content == "causal" and env.device in ("cuda", "rocm", "cpu")


def square_mask(call: SdpaCall, env: Environment, _: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find where the mask may be the causal triangle."""
    possible = call.mask_content == "perhaps-causal" and not call.is_causal
    return call.mask is not None and possible and env.device in ("cuda", "rocm", "cpu")


def mask_keeps_flash_away(
    call: SdpaCall, _: Environment, picked: SdpaPrediction, __: Mapping[str, Any]
) -> bool:
    """Find where flash refuses for the mask alone, which is not learnt, and mem-efficient or math runs."""
    return (
        call.mask is not None
        and not call.mask.requires_grad
        and picked.chosen in ("efficient", "math")
        and call.mask_content not in ("causal", "perhaps-causal")
        and _refused(picked, "flash", "mask")
    )


def gqa_math(call: SdpaCall, _: Environment, picked: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find where grouped heads end in math, or nowhere, and mem-efficient refuses for them alone."""
    heads, kv_heads = _heads(call)
    lost = picked.ran == "math" or picked.chosen == "error"
    return lost and call.enable_gqa and heads != kv_heads and _refused(picked, "efficient", "heads")


def implicit_mqa(call: SdpaCall, _: Environment, picked: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find where one key/value head without the flag ends in the math backend, for that alone."""
    heads, kv_heads = _heads(call)
    alone = any(_refused(picked, backend, "heads") for backend in _FUSED)
    return picked.ran == "math" and not call.enable_gqa and kv_heads == 1 < heads and alone


def expanded_kv_decode(
    call: SdpaCall, env: Environment, picked: SdpaPrediction, _: Mapping[str, Any]
) -> bool:
    """Find one query, and one head of keys and values expanded to all, in a kernel that can group heads."""
    if env.device != "cuda" or picked.chosen not in ("flash", "cudnn") or not call.four_dimensional:
        return False
    expanded = all(given.shape[1] > 1 and given.stride[1] == 0 for given in (call.k, call.v))
    return expanded and call.q.shape[2] == 1 < call.k.shape[2]


def last_stride(_: SdpaCall, __: Environment, picked: SdpaPrediction, ___: Mapping[str, Any]) -> bool:
    """Find where a fused backend would take the call but for the last stride."""
    return picked.ran == "math" and any(_refused(picked, backend, "last-stride") for backend in _FUSED)


def cpu_mask_stride(call: SdpaCall, env: Environment, _: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find a mask on a CPU with a strided last dimension."""
    mask = call.mask
    return (
        env.device == "cpu" and mask is not None and mask.ndim > 0 and mask.stride[-1] != 1 < mask.shape[-1]
    )


def unaligned_offset(call: SdpaCall, env: Environment, picked: SdpaPrediction, _: Mapping[str, Any]) -> bool:
    """Find where flash or mem-efficient runs on inputs that do not begin at a multiple of 16 bytes."""
    return (
        picked.chosen in ("flash", "efficient")
        and env.device == "cuda"
        and _major(env) >= 8  # where loads need 16 bytes
        and any(given.storage_offset * given.item_bytes % 16 for given in call.inputs)
    )


def mask_of_one_column(
    call: SdpaCall, env: Environment, picked: SdpaPrediction, _: Mapping[str, Any]
) -> bool:
    """Find a mask that broadcasts over the keys, where the backend cannot."""
    mask = call.mask
    if mask is None or env.device != "cuda" or mask.shape[-1:] != (1,) or call.k.shape[-2] == 1:
        return False
    rows = mask.ndim > 1 and mask.shape[-2] > 1
    return picked.chosen == "efficient" or (picked.chosen == "cudnn" and rows)


def order_lost(_: SdpaCall, env: Environment, __: SdpaPrediction, ___: Mapping[str, Any]) -> bool:
    """Find a first call under an order of its own where cuDNN would go first."""
    if env.device != "cuda" or not (env.first_call and env.set_priority):
        return False
    default = priority(replace(env, set_priority=False, order=None), releases()[env.torch])
    return default.order[0] == "cudnn"


def mask_padding(call: SdpaCall, _: Environment, picked: SdpaPrediction, numbers: Mapping[str, Any]) -> bool:
    """Find mem-efficient with a mask whose last dimension needs padding."""
    return picked.ran == "efficient" and call.mask is not None and call.k.shape[-2] % numbers["multiple"] != 0


def mask_memory(call: SdpaCall, _: Environment, __: SdpaPrediction, numbers: Mapping[str, Any]) -> bool:
    """Find a mask of its own for every head, and a large one."""
    mask = call.mask
    if mask is None or mask.ndim < 3 or mask.shape[-3] == 1:  # (..., H, L, S)
        return False
    own = prod(size for size, stride in zip(mask.shape, mask.stride, strict=True) if stride)
    return bool(own * mask.item_bytes >= numbers["bytes"])


def mask_offsets_overflow(
    call: SdpaCall, _: Environment, picked: SdpaPrediction, numbers: Mapping[str, Any]
) -> bool:
    """Find where mem-efficient trains with a mask of more pairs than 32 bits count."""
    pairs = call.q.shape[-2] * call.k.shape[-2]
    return (
        picked.ran == "efficient"
        and call.mask is not None
        and call.requires_grad
        and pairs >= numbers["pairs"]
    )


def large_head_dim_training(
    _: SdpaCall, __: Environment, picked: SdpaPrediction, ___: Mapping[str, Any]
) -> bool:
    """Find where flash refuses for the backward of its head dimension alone."""
    return _refused(picked, "flash", "training-head-dim") and picked.chosen not in (None, "cudnn")


def no_flash_build(_: SdpaCall, env: Environment, picked: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find where flash refuses for want of kernels alone."""
    return not env.flash_built and _refused(picked, "flash", "not-built")


def no_kernel_for_gb10(_: SdpaCall, env: Environment, picked: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find where mem-efficient is picked where it has no kernel."""
    return picked.chosen == "efficient" and env.compute_capability == (12, 1)


def flash_implementation_unused(
    _: SdpaCall, env: Environment, picked: SdpaPrediction, __: Mapping[str, Any]
) -> bool:
    """Find where a newer FlashAttention is activated and does not run."""
    answer = picked.answer("flash")
    return (
        env.flash_version != "FA2"
        and picked.chosen == "cudnn"
        and answer is not None
        and answer.accepted is True
    )


def rocm_architecture(_: SdpaCall, env: Environment, picked: SdpaPrediction, __: Mapping[str, Any]) -> bool:
    """Find an AMD GPU of which it is not known whether it has kernels."""
    return env.device == "rocm" and env.architecture is not None and picked.chosen is None


TESTS: Final[Mapping[str, Test]] = {
    "cudnn-backward-nan": cudnn_backward_nan,
    "cudnn-training": cudnn_training,
    "cudnn-old-unaligned-length": cudnn_old_unaligned_length,
    "cudnn-few-kv-heads": cudnn_few_kv_heads,
    "cudnn-expanded-query": cudnn_expanded_query,
    "cudnn-stride-copies": cudnn_stride_copies,
    "cudnn-plan-per-shape": cudnn_plan_per_shape,
    "cudnn-off-hopper": cudnn_off_hopper,
    "cudnn-runtime-version": cudnn_runtime_version,
    "dead-variable": dead_variable,
    "causal-one-query": causal_one_query,
    "causal-lengths": causal_lengths,
    "fully-masked-rows": fully_masked_rows,
    "explicit-causal-mask": explicit_causal_mask,
    "square-mask": square_mask,
    "mask-keeps-flash-away": mask_keeps_flash_away,
    "gqa-math": gqa_math,
    "implicit-mqa": implicit_mqa,
    "expanded-kv-decode": expanded_kv_decode,
    "last-stride": last_stride,
    "cpu-mask-stride": cpu_mask_stride,
    "unaligned-offset": unaligned_offset,
    "mask-of-one-column": mask_of_one_column,
    "order-lost": order_lost,
    "mask-padding": mask_padding,
    "mask-memory": mask_memory,
    "mask-offsets-overflow": mask_offsets_overflow,
    "large-head-dim-training": large_head_dim_training,
    "no-flash-build": no_flash_build,
    "no-kernel-for-gb10": no_kernel_for_gb10,
    "flash-implementation-unused": flash_implementation_unused,
    "rocm-architecture": rocm_architecture,
}
"""Tests by the name that the table uses."""
