"""One call of an ordinary operation: what it puts on the GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tracehunch.predict.activities import COUNTED, Activities, KernelGuess, Spent, cannot_tell, total
from tracehunch.predict.ops.gemm import predict_product
from tracehunch.predict.ops.steps import Call, Step, Steps, unknown
from tracehunch.predict.ops.table import handler_of, plain_name
from tracehunch.predict.ops.tensor import Tensor
from tracehunch.predict.ops.times import step_time

if TYPE_CHECKING:
    from tracehunch.predict.environment import Environment

_MEASURED: Final = ((9, 0), (2, 11))
_ROUGH: Final = frozenset(
    [
        "conv2d", "cudnn_convolution", "convolution", "_convolution", "conv_transpose2d",
        "cudnn_convolution_transpose",
    ]
)  # fmt: skip


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
    plain = plain_name(name)
    if env is not None and env.device == "cpu":
        return Activities(reasons=("runs on the CPU: nothing on a GPU",))
    steps = steps_of(name, tensors, kwargs, env)
    made = total(_activities(step, env, f"aten::{plain}") for step in steps)
    if made.time is not None:
        made = replace(made, spent=(Spent(f"aten::{plain}", made.time.mid_us),))
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
) -> Steps:
    """Return the launches of one call, as `predict_op` adds them up."""
    plain = plain_name(name)
    handler = handler_of(plain)
    if handler is None:
        return unknown(f"{plain} is not among the operations that are known")
    return handler(Call(plain, tuple(tensors), dict(kwargs or {}), env))


def _activities(step: Step, env: "Environment | None", op: str) -> Activities:
    if step.kind == "product":
        assert step.product is not None
        return predict_product(env or _h200(), step.product, op)
    if step.kind == "unknown":
        return cannot_tell(step.text)
    if step.kind == "error":
        return Activities(raises=step.text, reasons=(step.text,))
    gpu = None if env is None else env.gpu
    time = None if gpu is None else step_time(step, gpu)
    if step.kind == "copy":
        return Activities(copies=(step.text,), bytes=step.bytes, time=time)
    if step.kind == "memset":
        return Activities(memsets=1, bytes=step.bytes, time=time)
    made = KernelGuess(step.text, step.library, step.algorithm, "none", step.dtype, op)
    return Activities(kernels=(made,), flops=step.flops, bytes=step.bytes, time=time)


def _h200() -> "Environment":
    from tracehunch.predict.environment import environment  # noqa: PLC0415  # only where no environment is given

    return environment("h200", "2.11")
