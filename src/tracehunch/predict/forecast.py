"""All that is expected of one attention variant: backend, activities, work, time and what limits it."""

from dataclasses import dataclass, replace
from typing import Final

from tracehunch.predict.activities import Activities
from tracehunch.predict.attention import predict_attention
from tracehunch.predict.environment import Backend, Environment
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline import (
    AttentionDims,
    AttentionTime,
    Calibration,
    Ceilings,
    NoEstimate,
    attention_time,
    attention_work,
    ceilings,
    executed_flops,
    roofline,
    unfused_bytes,
)
from tracehunch.predict.roofline.bound import Bound
from tracehunch.predict.roofline.time import Clock
from tracehunch.predict.sdpa import SdpaCall, SdpaPrediction, predict_sdpa

BY_HAND: Final = ("naive", "naive_inplace")
"""Variants that make no SDPA call."""

_PINS: Final[dict[str, Backend]] = {
    "math": "math",
    "flash": "flash",
    "efficient": "efficient",
    "cudnn": "cudnn",
}
_UNFUSED: Final = (*BY_HAND, "math")
_HOST_BOUND: Final = 1.3
"""From how many times the GPU's own time on a call counts as bound by the host that launches it."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one forward of a variant is expected to do, and how long its backward takes.

    `backend` is that of SDPA which runs, "none" where the variant makes no SDPA call, None where the call
    raises or it cannot be told. `sdpa` is the dispatcher's answer, None by hand. `flops` are those of the
    matrix products that run (a fused causal kernel skips the masked half), `hbm_bytes` what has to move:
    inputs and output once for a fused kernel, every step's for an unfused variant. Times are a `NoEstimate`
    where nothing can be said.
    """

    variant: str
    backend: str | None
    sdpa: SdpaPrediction | None
    forward: Activities
    time: AttentionTime | NoEstimate
    backward: AttentionTime | NoEstimate
    flops: int | None = None
    hbm_bytes: int | None = None
    bound: Bound | None = None

    @property
    def raises(self) -> str | None:
        """The error that the forward ends in."""
        return self.forward.raises


def pinned_to(variant: str, env: Environment) -> Environment:
    """Return the environment in which a variant makes its SDPA call."""
    name = plain_name(variant)
    return replace(env, pinned=(_PINS[name],)) if name in _PINS else env


def plain_name(variant: str) -> str:
    """Return a variant's name without the "sdpa_" that it may have in front."""
    return variant.removeprefix("sdpa_")


def forecast(
    variant: str,
    call: SdpaCall,
    env: Environment,
    *,
    clock: Clock = "host",
    calibration: Calibration | None = None,
) -> Forecast:
    """Return what is expected of a variant.

    `clock` "host" is the time between two events around a call that the host launches, as benchmarks
    measure; "gpu" the sum of its kernels, copies and memsets, as a trace shows. `calibration` are peaks
    measured on the machine, which take precedence over the data sheet's.

    Raises:
        GuessError: no such variant.

    """
    name = plain_name(variant)
    if name in BY_HAND:
        picked = None
        backend: str | None = "none"
        forward = predict_attention(name, call, env)
    else:
        picked = predict_sdpa(call, pinned_to(name, env))
        backend = picked.ran
        forward = predict_attention(name, call, env, picked=picked)
    if forward.raises is not None:
        none = NoEstimate("the call raises")
        return Forecast(variant, None, picked, forward, none, none)
    timed = name if name in BY_HAND else backend
    reason = _untimed(timed, call, env, picked)
    if reason or timed is None:
        none = NoEstimate(reason)
        return Forecast(variant, backend, picked, forward, none, none)
    dims = _dims(call)
    mask = call.mask is not None

    def time_of(clock: Clock, *, backward: bool = False) -> AttentionTime | NoEstimate:
        return attention_time(
            timed, dims, call.q.dtype, call.is_causal, env.gpu,
            backward=backward, mask=mask, dropout=call.dropout > 0, clock=clock, calibration=calibration,
        )  # fmt: skip

    on_gpu = time_of("gpu")
    by_host = time_of("host")
    flops = executed_flops(timed, dims, call.is_causal)
    moved = _bytes(timed, dims, call)
    return Forecast(
        variant,
        backend,
        picked,
        forward,
        by_host if clock == "host" else on_gpu,
        time_of(clock, backward=True),
        flops,
        moved,
        _bound(flops, moved, _roof(call, env, calibration), on_gpu=on_gpu, by_host=by_host),
    )


def _untimed(timed: str | None, call: SdpaCall, env: Environment, picked: SdpaPrediction | None) -> str:
    """Return why work and time cannot be given, "" if they can."""
    if timed is None:
        if picked is not None and picked.chosen == "error":
            return "no backend takes the call"
        said = "" if picked is None else picked.cannot_tell
        return said or "which backend answers the call cannot be told"
    if env.device not in ("cuda", "rocm"):
        return f"times on {env.device} are not known"
    if not call.four_dimensional or any(given.numel == 0 for given in call.inputs):
        return "q, k and v are not stacks of matrices with elements"
    if call.q.shape[1] % call.k.shape[1]:
        return "the heads of k and v do not divide those of q"
    return ""


def _dims(call: SdpaCall) -> AttentionDims:
    batch, heads, queries, head_dim = call.q.shape
    _, kv_heads, keys, _ = call.k.shape
    return AttentionDims(batch, heads, queries, keys, head_dim, kv_heads, call.v.shape[3])


def _bytes(timed: str, dims: AttentionDims, call: SdpaCall) -> int | None:
    if timed not in _UNFUSED:
        return attention_work(dims, call.q.dtype, call.is_causal, training=call.requires_grad).least_bytes
    return unfused_bytes(timed, dims, dtype_word(call.q.dtype), call.is_causal)


def _roof(call: SdpaCall, env: Environment, calibration: Calibration | None) -> Ceilings | None:
    return None if env.gpu is None else ceilings(env.gpu, call.q.dtype, calibration)


def _bound(
    flops: int,
    moved: int | None,
    roof: Ceilings | None,
    *,
    on_gpu: AttentionTime | NoEstimate,
    by_host: AttentionTime | NoEstimate,
) -> Bound | None:
    if roof is None or moved is None:
        return None
    if isinstance(on_gpu, AttentionTime) and isinstance(by_host, AttentionTime):
        late = by_host.mid_us > _HOST_BOUND * on_gpu.mid_us
        return roofline(flops, moved, roof, floor_us=by_host.mid_us if late else 0.0).bound
    return roofline(flops, moved, roof).bound
