"""SDPA calls of a program, forward and backward: backend, launches by op, and times."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from tracehunch.predict.activities import Activities, TimeRange, total
from tracehunch.predict.attention import Part, activities_of, attention_run
from tracehunch.predict.environment import BACKENDS, Environment
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.program.calls import SDPA, OpCall
from tracehunch.predict.program.direct import direct_prediction
from tracehunch.predict.program.model import OpPart
from tracehunch.predict.roofline import AttentionTime, Launched, Timings, timings
from tracehunch.predict.sdpa import SdpaCall, SdpaPrediction, TensorSpec, predict_sdpa
from tracehunch.predict.sdpa.tensor import dtype_name

BACKWARD_OPS: Final = {
    "flash": "aten::_scaled_dot_product_flash_attention_backward",
    "efficient": "aten::_scaled_dot_product_efficient_attention_backward",
    "cudnn": "aten::_scaled_dot_product_cudnn_attention_backward",
}
"""The op of a fused backend's backward."""

_COPY: Final = "aten::copy_"
_FILL: Final = "aten::fill_"


def pinned(call: OpCall, env: Environment) -> Environment:
    """Return the environment with the backends that the call's context allows."""
    if call.pinned is None:
        return env
    return replace(env, pinned=tuple(backend for backend in BACKENDS if backend in call.pinned))


def attention_parts(call: OpCall, env: Environment) -> tuple[tuple[OpPart, ...], SdpaPrediction]:
    """Return what an SDPA call launches, by op, and the dispatcher's answer.

    In the phase "backward" it is the backward alone.
    """
    assert call.sdpa is not None
    where = pinned(call, env)
    picked = predict_sdpa(call.sdpa, where) if call.op == SDPA else direct_prediction(call, where)
    backward = call.phase == "backward"
    gradient = _gradient(call) if backward else None
    run = attention_run("auto", call.sdpa, where, picked=picked, backward=backward, gradient=gradient)
    parts = run.backward if backward else run.forward
    whole = activities_of(parts, where)
    timed = _times(parts, call.sdpa, where, picked, backward=backward)
    own = [_own(part, picked, call.op, backward=backward) for part in parts]
    made = []
    at = 0
    for op, same in groupby(zip(own, parts, strict=True), key=lambda pair: pair[0]):
        group = [part for _, part in same]
        count = sum(len(part.steps) for part in group)
        found = total(part.activities for part in group)
        time = None if timed is None else _range(timed, at, count)
        made.append(OpPart(op, replace(found, time=time, confidence=whole.confidence)))
        at += count
    return tuple(made), picked


def _gradient(call: OpCall) -> TensorSpec | None:
    """Return the gradient of the output, which a backward is given first, if it was recorded."""
    if not call.tensors or call.sdpa is None:
        return None
    given = call.tensors[0]
    expected = (*call.sdpa.q.shape[:-1], call.sdpa.v.shape[-1])
    if given.shape != expected:
        return None
    return TensorSpec(given.shape, given.strides, dtype_name(given.dtype))


def _times(
    parts: Sequence[Part], call: SdpaCall, env: Environment, picked: SdpaPrediction, *, backward: bool
) -> Timings | None:
    if picked.ran is None or not call.four_dimensional:
        return None
    steps = tuple(step for part in parts for step in part.steps)
    found = timings(Launched(picked.ran, dtype_word(call.q.dtype), backward=backward, steps=steps), env.gpu)
    return found if isinstance(found.gpu, AttentionTime) and len(found.steps_us) == len(steps) else None


def _range(timed: Timings, at: int, count: int) -> TimeRange | None:
    """Return the time of some of the steps, its range in proportion to that of all."""
    assert isinstance(timed.gpu, AttentionTime)
    us = sum(timed.steps_us[at : at + count])
    if not count or not timed.gpu.mid_us:
        return None
    return TimeRange(us * timed.gpu.low_us / timed.gpu.mid_us, us, us * timed.gpu.high_us / timed.gpu.mid_us)


def _own(part: Part, picked: SdpaPrediction, asked: str, *, backward: bool) -> str:
    """Return the op that launches a part: its kernels', a copy's, for memsets the backend's, else `asked`."""
    found: Activities = part.activities
    if found.kernels:
        first = found.kernels[0]
        return _FILL if first.algorithm == "fill" else first.op or asked
    if found.copies:
        return _COPY
    if picked.ran in BACKWARD_OPS:
        return f"aten::_{picked.ran}_attention_{'backward' if backward else 'forward'}"
    return part.called if part.called not in ("", SDPA) else asked
