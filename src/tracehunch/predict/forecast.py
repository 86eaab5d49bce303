"""All that is expected of one attention variant: backend, activities, work, time and what limits it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tracehunch.predict.activities import Activities, Spent
from tracehunch.predict.attention import BY_HAND, Part, activities_of, attention_run, pinned_to
from tracehunch.predict.attention.fused import dims_of
from tracehunch.predict.environment import Environment
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline import (
    AttentionTime,
    Calibration,
    Ceilings,
    Launched,
    NoEstimate,
    Timings,
    attention_work,
    ceilings,
    executed_flops,
    roofline,
    timings,
)
from tracehunch.predict.roofline.bound import Bound
from tracehunch.predict.roofline.dims import UNFUSED
from tracehunch.predict.roofline.steps import Step
from tracehunch.predict.roofline.time import Clock
from tracehunch.predict.sdpa import SdpaCall, SdpaPrediction, predict_sdpa

__all__ = ["BY_HAND", "Forecast", "forecast", "leaders", "pinned_to", "plain_name", "shares"]

_HOST_BOUND: Final = 1.3
"""From how many times the GPU's own time on a call counts as bound by the host that launches it."""


_MEASURED: Final = (2, 11)
"""The version of PyTorch that times were measured with."""

_CLEAR: Final = 1.3
"""How many times the next one's time an op must take to lead for sure: single steps are off by a quarter."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one forward of a variant is expected to do, and how long its backward takes.

    `backend` is that of SDPA which runs, "none" where the variant makes no SDPA call, None where the call
    raises or it cannot be told. `sdpa` is the dispatcher's answer, None by hand. `flops` are those of the
    matrix products that run (a fused causal kernel skips the masked half), `hbm_bytes` what has to move:
    inputs and output once for a fused kernel, every step's for an unfused variant. Times are a `NoEstimate`
    where nothing can be said; `forward` has those of the GPU, by the ops that are called.
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
    picked = None if name in BY_HAND else predict_sdpa(call, pinned_to(name, env))
    backend = "none" if picked is None else picked.ran
    run = attention_run(name, call, env, picked=picked)
    forward = activities_of(run.forward, env)
    if forward.raises is not None:
        none = NoEstimate("the call raises")
        return Forecast(variant, None, picked, forward, none, none)
    timed = name if picked is None else picked.ran
    reason = _untimed(timed, call, env, picked)
    if reason or timed is None:
        none = NoEstimate(reason)
        return Forecast(variant, backend, picked, forward, none, none)
    if env.device != "cuda":  # the model of time takes other devices' kernels for CUDA's
        run = attention_run(name, call, replace(env, device="cuda"), picked=picked)
    work = forward if env.device == "cuda" else activities_of(run.forward, env)
    launched = Launched(timed, dtype_word(call.q.dtype), backward=False, steps=_steps(run.forward))
    times = _cautious(timings(launched, env.gpu, calibration), env)
    if not launched.steps and work.reasons:
        none = NoEstimate(work.reasons[0])
        times = Timings(none, none)
    after = replace(launched, backward=True, steps=_steps(run.backward))
    if isinstance(times.gpu, AttentionTime):
        forward = replace(forward, time=times.gpu.range, spent=_spent(run.forward, times.steps_us))
    flops = executed_flops(timed, dims_of(call), call.is_causal)
    moved = _bytes(timed, call, work)
    return Forecast(
        variant,
        backend,
        picked,
        forward,
        times.by(clock),
        _cautious(timings(after, env.gpu, calibration), env).by(clock),
        flops,
        moved,
        _bound(flops, moved, _roof(call, env, calibration), times),
    )


def _cautious(times: Timings, env: Environment) -> Timings:
    """Lower the confidence in times of another version of PyTorch than the measured one."""
    if env.torch == _MEASURED:
        return times
    return replace(times, gpu=_lowered(times.gpu), host=_lowered(times.host))


def _lowered(time: AttentionTime | NoEstimate) -> AttentionTime | NoEstimate:
    if isinstance(time, AttentionTime) and time.confidence == "high":
        return replace(time, confidence="medium")
    return time


def shares(activities: Activities) -> tuple[tuple[str, float], ...]:
    """Return the ops that are called with their shares of the GPU's time (0 to 1), the largest first.

    Nothing where times cannot be told, or nothing runs.
    """
    total = sum(spent.us for spent in activities.spent)
    by_op: dict[str, float] = {}
    for spent in activities.spent:
        by_op[spent.called] = by_op.get(spent.called, 0.0) + spent.us
    ordered = sorted(by_op.items(), key=lambda pair: -pair[1])
    return tuple((op, us / total) for op, us in ordered if total > 0)


def leaders(activities: Activities) -> tuple[str, ...]:
    """Return the ops that clearly lead by GPU time, in order; none where the first two are close."""
    found = shares(activities)
    clear: list[str] = []
    behind = [*(share for _, share in found[1:]), 0.0]
    for (op, share), following in zip(found, behind, strict=False):
        clear.append(op)
        if share < _CLEAR * following:
            return tuple(clear[:-1])
    return tuple(clear)


def _steps(parts: Sequence[Part]) -> tuple[Step, ...]:
    return tuple(step for part in parts for step in part.steps)


def _spent(parts: Sequence[Part], times_us: Sequence[float]) -> tuple[Spent, ...]:
    """Return what each step takes by the op that is called."""
    called = [part.called or _own_op(part) for part in parts for _ in part.steps]
    return tuple(Spent(op, us) for op, us in zip(called, times_us, strict=True))


def _own_op(part: Part) -> str:
    """Return the op of a part's first kernel."""
    kernels = part.activities.kernels
    return kernels[0].op if kernels else ""


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


def _bytes(timed: str, call: SdpaCall, forward: Activities) -> int | None:
    if timed in UNFUSED:
        return None if forward.kernels is None else forward.bytes
    word = dtype_word(call.q.dtype)
    return attention_work(dims_of(call), word, call.is_causal, training=call.requires_grad).least_bytes


def _roof(call: SdpaCall, env: Environment, calibration: Calibration | None) -> Ceilings | None:
    return None if env.gpu is None else ceilings(env.gpu, call.q.dtype, calibration)


def _bound(
    flops: int,
    moved: int | None,
    roof: Ceilings | None,
    times: Timings,
) -> Bound | None:
    if roof is None or moved is None:
        return None
    if isinstance(times.gpu, AttentionTime) and isinstance(times.host, AttentionTime):
        late = times.host.mid_us > _HOST_BOUND * times.gpu.mid_us
        return roofline(flops, moved, roof, floor_us=times.host.mid_us if late else 0.0).bound
    return roofline(flops, moved, roof).bound
