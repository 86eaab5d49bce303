"""One call of an ordinary operation: what it puts on the GPU."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from tracehunch.predict.activities import (
    COUNTED,
    Activities,
    KernelGuess,
    Spent,
    TimeRange,
    cannot_tell,
    total,
)
from tracehunch.predict.ops.gemm import predict_product
from tracehunch.predict.ops.inner import innermost
from tracehunch.predict.ops.steps import UNTIMED, Call, Step, Steps, unknown
from tracehunch.predict.ops.table import handler_of, plain_name
from tracehunch.predict.ops.tensor import Tensor
from tracehunch.predict.ops.times import step_time

if TYPE_CHECKING:
    from tracehunch.predict.environment import Environment

_MEASURED: Final = ((9, 0), (2, 11))
_GROUPED: Final = 1.15
"""How many times longer a grouped product takes than a batch of the same sizes, besides what it sets up."""
_ROUGH: Final = frozenset(
    [
        "conv2d", "cudnn_convolution", "convolution", "_convolution", "conv_transpose2d",
        "cudnn_convolution_transpose", "convolution_backward", "_cudnn_rnn", "_cudnn_rnn_backward",
    ]
)  # fmt: skip

Part = tuple[str, Activities]
"""The innermost op around some launches, and what they are."""


def predict_op(
    name: str,
    tensors: Sequence[Tensor],
    kwargs: Mapping[str, Any] | None = None,
    env: "Environment | None" = None,
) -> Activities:
    """Return what one call of an operation runs.

    `name` is the op's, as "aten::softmax", "torch.softmax" or "softmax"; `tensors` its tensor arguments in
    order (a list of tensors for `cat`), `kwargs` the others by torch's names. Without `env` counts, FLOPs and
    bytes are those of an H200, and there are no times.
    """
    if env is not None and env.device == "cpu":
        return Activities(reasons=("runs on the CPU: nothing on a GPU",))
    return whole(name, predict_parts(name, tensors, kwargs, env))


def whole(name: str, parts: Iterable[Part]) -> Activities:
    """Return all parts of a call together, its time as that of the op that was called."""
    made = total(activities for _, activities in parts)
    if made.time is None:
        return made
    return replace(made, spent=(Spent(f"aten::{plain_name(name)}", made.time.mid_us),))


def predict_parts(
    name: str,
    tensors: Sequence[Tensor],
    kwargs: Mapping[str, Any] | None = None,
    env: "Environment | None" = None,
    outputs: Sequence[Tensor] = (),
) -> tuple[Part, ...]:
    """Return the same by the op that a trace shows each launch under, in order of launch.

    `outputs` are the tensors that the call returns, where they are known.
    """
    plain = plain_name(name)
    own = innermost(plain)
    steps = steps_of(name, tensors, kwargs, env, outputs)
    runs = groupby(steps, key=lambda step: step.op or own)
    return tuple((op, _cautious(plain, steps_activities(tuple(run), env, op), env)) for op, run in runs)


def steps_activities(steps: Steps, env: "Environment | None", op: str) -> Activities:
    """Return what launches under one op are together."""
    return total(_activities(step, env, op) for step in steps)


def _cautious(plain: str, made: Activities, env: "Environment | None") -> Activities:
    if plain in _ROUGH:
        made = made.because("cuDNN's choice was only looked at from outside", confidence="low")
    if env is None or (env.compute_capability, env.torch) == _MEASURED or made.empty:
        return made
    return made.because(COUNTED, confidence="medium")


def steps_of(
    name: str,
    tensors: Sequence[Tensor],
    kwargs: Mapping[str, Any] | None = None,
    env: "Environment | None" = None,
    outputs: Sequence[Tensor] = (),
) -> Steps:
    """Return the launches of one call, as `predict_op` adds them up."""
    plain = plain_name(name)
    handler = handler_of(plain)
    if handler is None:
        return unknown(f"{plain} is not among the operations that are known")
    return handler(Call(plain, tuple(tensors), dict(kwargs or {}), env, tuple(outputs)))


def _activities(step: Step, env: "Environment | None", op: str) -> Activities:
    if step.product is not None:
        found = predict_product(env or _h200(), step.product, op)
        return found if step.kind == "product" else _grouped(found, step, op)
    if step.kind == "unknown":
        return cannot_tell(step.text)
    if step.kind == "error":
        return Activities(raises=step.text, reasons=(step.text,))
    return _moving(step, env, op)


def _moving(step: Step, env: "Environment | None", op: str) -> Activities:
    """Return a kernel, copy or memset whose time follows from what it moves."""
    gpu = None if env is None else env.gpu
    time = None if gpu is None or step.family == UNTIMED else step_time(step, gpu)
    if step.kind == "copy":
        return Activities(copies=(step.text,), bytes=step.bytes, time=time)
    if step.kind == "memset":
        return Activities(memsets=1, bytes=step.bytes, time=time)
    made = KernelGuess(step.text, step.library, step.algorithm, "none", step.dtype, op)
    return Activities(kernels=(made,), flops=step.flops, bytes=step.bytes, time=time)


def _grouped(alone: Activities, step: Step, op: str) -> Activities:
    """Return one kernel in place of a product's, which takes a little longer."""
    found = alone.kernels[0] if alone.kernels else None
    unit, dtype = ("tensor-core", step.dtype) if found is None else (found.unit, found.dtype)
    time = None
    if alone.time is not None:
        low, mid, high = alone.time.low_us, alone.time.mid_us, alone.time.high_us
        time = TimeRange(*(step.items / 1e3 + _GROUPED * us for us in (low, mid, high)))
    made = KernelGuess(step.text, step.library, step.algorithm, unit, dtype, op)
    return Activities(kernels=(made,), flops=alone.flops, bytes=alone.bytes, time=time, confidence="low")


def _h200() -> "Environment":
    from tracehunch.predict.environment import environment  # noqa: PLC0415  # only where no environment is given

    return environment("h200", "2.11")
