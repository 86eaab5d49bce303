"""The slots that the words of checks and hazards may use."""

from math import prod

from tracehunch import units
from tracehunch.predict.environment import Environment
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.gpu_predicates import efficient_alignment
from tracehunch.predict.sdpa.prediction import SdpaPrediction
from tracehunch.predict.sdpa.tensor import TensorSpec


def slots(call: SdpaCall, env: Environment) -> dict[str, object]:
    """Return the call's sizes by slot, as {d} for q's head dim, {l} and {s} for lengths, {h} for heads."""
    q, k, v = call.inputs
    dtypes = list(dict.fromkeys(given.dtype for given in call.inputs))
    alignment = efficient_alignment(call, env)
    return {
        "b": _size(q, -4), "bk": _size(k, -4), "bv": _size(v, -4),
        "h": _size(q, -3), "hk": _size(k, -3), "hv": _size(v, -3),
        "groups": _groups(q, k),
        "l": _size(q, -2), "s": _size(k, -2),
        "d": _size(q, -1), "dk": _size(k, -1), "dv": _size(v, -1),
        "ndims": ", ".join(str(len(given.shape)) for given in call.inputs),
        "dtypes": ", ".join(dtypes),
        "dropout": f"{call.dropout:g}",
        "gqa_flag": call.enable_gqa,
        "q_stride": q.stride, "k_stride": k.stride, "v_stride": v.stride,
        "mask_stride": "none" if call.mask is None else call.mask.stride,
        "mask_shape": "none" if call.mask is None else call.mask.shape,
        "q_offset": q.storage_offset, "k_offset": k.storage_offset, "v_offset": v.storage_offset,
        "alignment": alignment if isinstance(alignment, int) else 8,
        "cc": "unknown" if env.compute_capability is None else ".".join(map(str, env.compute_capability)),
        "device": env.device,
        "architecture": env.architecture or "this GPU",
        "cudnn": "of unknown version" if env.cudnn is None else cudnn_name(env.cudnn),
    }  # fmt: skip


def hazard_slots(call: SdpaCall, env: Environment, picked: SdpaPrediction) -> dict[str, object]:
    """Return the slots of hazards: those of checks, what was picked and why, and sizes in memory.

    {scores} is the math backend's score matrix, in float32 for half inputs; {mask_full} the mask expanded to
    (B, H, L, S) in the query's type, {mask_own} what the mask itself holds.
    """
    q, k, _ = call.inputs
    pairs = prod(q.shape[:-1]) * k.shape[-2]
    mask = call.mask
    held = 0 if mask is None else prod(n for n, step in zip(mask.shape, mask.stride, strict=True) if step)
    refused = [answer.first for answer in picked.answers if answer.first is not None]
    return slots(call, env) | {
        "chosen": picked.chosen or "another backend",
        "why": "; ".join(f"{first.backend}: {first.words}" for first in refused if first.backend != "math"),
        "scores": units.size(pairs * max(q.item_bytes, 4)),
        "mask_full": units.size(pairs * q.item_bytes),
        "mask_own": units.size(0 if mask is None else held * mask.item_bytes),
        "torch": env.torch_name,
        "flash_version": env.flash_version.removeprefix("FA"),
    }


def cudnn_name(version: int) -> str:
    """Return "9.19.0" for 91900."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def _groups(q: TensorSpec, k: TensorSpec) -> str:
    heads, kv_heads = _size(q, -3), _size(k, -3)
    if isinstance(heads, int) and isinstance(kv_heads, int) and kv_heads and heads % kv_heads == 0:
        return str(heads // kv_heads)
    return f"{heads} // {kv_heads}"


def _size(given: TensorSpec, at: int) -> int | str:
    return given.shape[at] if len(given.shape) >= -at else "none"
