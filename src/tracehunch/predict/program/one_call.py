"""One call of a program: what it puts on the GPU, under which op, and the least time that takes."""

from functools import lru_cache
from itertools import groupby
from typing import Any, Final

from tracehunch.errors import GuessError
from tracehunch.predict.activities import Activities, cannot_tell, total
from tracehunch.predict.environment import Environment
from tracehunch.predict.ops.call import predict_parts, steps_activities
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.ops.table import plain_name
from tracehunch.predict.program.attention import attention_parts
from tracehunch.predict.program.calls import OpCall
from tracehunch.predict.program.model import CallGuess, OpPart, WorkBound
from tracehunch.predict.program.transfers import HOST, crosses, transfer_steps
from tracehunch.predict.roofline import ceilings, roofline
from tracehunch.predict.roofline.dims import TIMED_DTYPES
from tracehunch.predict.sdpa import SdpaPrediction

_REMEMBERED: Final = 65_536  # kinds of calls
_PRODUCTS: Final = ("gemm", "conv", "attention")


def guess_call(call: OpCall, env: Environment) -> CallGuess:
    """Return what one call is expected to run."""
    parts, picked = _parts(_kind(call), env)
    activities = total(part.activities for part in parts)
    us, bound = _roofline(activities, env, dtype_word(call.sdpa.q.dtype) if call.sdpa is not None else "")
    return CallGuess(call, parts, activities, us, bound, picked)


class _Kind:
    """A call as far as its launches depend on it: calls of one kind are predicted once."""

    __slots__ = ("call", "key")

    def __init__(self, call: OpCall) -> None:
        self.call = call
        self.key = (
            call.op, call.tensors, call.devices, _frozen(call.options), call.outputs, call.output_devices,
            call.sdpa, call.phase if call.sdpa is not None else "", call.pinned,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kind) and self.key == other.key


def _kind(call: OpCall) -> _Kind:
    return _Kind(call)


@lru_cache(maxsize=_REMEMBERED)
def _parts(kind: _Kind, env: Environment) -> tuple[tuple[OpPart, ...], SdpaPrediction | None]:
    call = kind.call
    if env.device == "cpu":
        return (), None
    if call.sdpa is not None:
        return attention_parts(call, env) if not _on_host(call) else ((), None)
    return _ordinary(call, env), None


def _ordinary(call: OpCall, env: Environment) -> tuple[OpPart, ...]:
    if _on_host(call):
        return ()
    if crosses(call):
        steps = groupby(transfer_steps(call), key=lambda step: step.op)
        return tuple(OpPart(op, steps_activities(tuple(run), env, op)) for op, run in steps)
    try:
        found = predict_parts(call.op, call.tensors, call.options, env, call.outputs)
    except (GuessError, LookupError, ValueError, TypeError, ArithmeticError) as error:
        reason = f"{plain_name(call.op)} with these arguments is not understood ({error})"
        return (OpPart(call.op, cannot_tell(reason)),)
    return tuple(OpPart(op, activities) for op, activities in found)


def _on_host(call: OpCall) -> bool:
    """Whether all that a call reads and writes lies on the host."""
    places = (*call.devices, *call.output_devices)
    return bool(places) and all(place == HOST for place in places)


def _roofline(
    activities: Activities, env: Environment, dtype: str = ""
) -> tuple[float | None, WorkBound | None]:
    """Return the least time of a call's own arithmetic and traffic, and what sets it.

    `dtype` is what it multiplies in; where it is not given, that of its kernels that multiply.
    """
    if env.gpu is None or activities.kernels is None or activities.empty:
        return None, None
    kernels = (kernel.dtype for kernel in activities.kernels if kernel.algorithm.startswith(_PRODUCTS))
    word = dtype or next((kind for kind in kernels if kind), "fp32")
    roof = ceilings(env.gpu, word if word in TIMED_DTYPES else "fp32") or ceilings(env.gpu, "fp32")
    if roof is None:
        return None, None
    found = roofline(activities.flops, activities.bytes, roof)
    return found.us, "compute" if found.bound == "compute" else "memory"


def _frozen(value: Any) -> Any:
    """Return an option as something that can be hashed."""
    if isinstance(value, dict) or hasattr(value, "items"):
        return tuple(sorted((str(name), _frozen(one)) for name, one in value.items()))
    if isinstance(value, list | tuple):
        return tuple(_frozen(one) for one in value)
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return (type(value).__name__, value)
