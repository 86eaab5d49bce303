"""Calls of a compiled program: generated kernels, library operations, and the fused backends of SDPA."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tracehunch.hardware import Gpu
from tracehunch.predict.activities import Activities, KernelGuess, TimeRange, cannot_tell
from tracehunch.predict.environment import Environment
from tracehunch.predict.ops.steps import Step
from tracehunch.predict.ops.times import step_time
from tracehunch.predict.program.calls import SDPA, OpCall
from tracehunch.predict.program.compiled import CompiledProgram, GeneratedKernel
from tracehunch.predict.program.direct import backend_called, direct_call, is_of_sdpa
from tracehunch.predict.program.model import CallGuess, OpPart
from tracehunch.predict.program.one_call import guess_call
from tracehunch.predict.roofline import ceilings, roofline

START_US_AND_SHARE: Final[Mapping[str, tuple[float, float]]] = {
    "poi": (1.0, 0.94),
    "per": (1.3, 0.77),
    "red": (0.8, 0.58),
    "for": (1.7, 0.71),
}
"""Microseconds before a kind of generated kernel moves bytes, and the part of the bandwidth at which it does.

Fitted on 91 kernels of ten compiled models on an H200 (profiled with torch 2.11; those that the compiler of
2.13 gives the same name). Of a model left out of the fit, a kernel is off by 15, 23, 22 and 11 % at the
median. Unlike PyTorch's own, these are no quicker where what they read would fit into the second-level cache.
"""

_LOW: Final = 0.65
_HIGH: Final = 1.5

_TEMPLATE: Final = "tem"


def guess_calls(compiled: CompiledProgram, env: Environment) -> tuple[tuple[int, CallGuess], ...]:
    """Return the position of each call and what it is expected to run.

    Views inside regions, which run nothing, are left out.
    """
    inside = {at for run in compiled.runs for at in range(run.first, run.end)}
    trains = any(call.phase == "backward" for call in compiled.program.calls)
    unknown = {
        run.first: compiled.regions[run.region]
        for run in compiled.runs
        if compiled.regions[run.region].unknown
    }
    found: list[tuple[int, CallGuess]] = []
    for at, call in enumerate((*compiled.program.calls, None)):
        if at in unknown:
            region = unknown[at]
            named = OpCall(f"compiled graph {region.id}", phase=region.phase, line=region.line)
            reason = f"Inductor could not compile it without a GPU: {region.unknown}"
            found.append((at, _one(named, cannot_tell(reason))))
        if call is None:
            break
        made = _guess(compiled, at, call, env, trains=trains)
        if at not in inside or not made.activities.empty:
            found.append((at, made))
    return tuple(found)


def _guess(compiled: CompiledProgram, at: int, call: OpCall, env: Environment, *, trains: bool) -> CallGuess:
    kernel = compiled.launches.get(at)
    if kernel is not None:
        return generated_call(call, kernel, env)
    return guess_call(as_sdpa(call, trains=trains) or call, env)


def generated_call(call: OpCall, kernel: GeneratedKernel, env: Environment) -> CallGuess:
    """Return the launch of a generated kernel."""
    activities = generated_activities(kernel, env)
    if env.gpu is None or not activities.bytes:
        return _one(call, activities)
    roof = ceilings(env.gpu, "fp32")
    found = None if roof is None else roofline(activities.flops, activities.bytes, roof)
    return replace(_one(call, activities), roofline_us=None if found is None else found.us, bound="memory")


def generated_activities(kernel: GeneratedKernel, env: Environment) -> Activities:
    """Return one kernel, and the time that its bytes take."""
    unit = "tensor-core" if kernel.kind == _TEMPLATE else "none"
    one = KernelGuess(
        kernel.name, "triton", "attention" if unit != "none" else "fused", unit, None, kernel.name
    )
    made = Activities(kernels=(one,), bytes=kernel.bytes or 0, flops=kernel.elements, confidence="medium")
    if kernel.kind == _TEMPLATE:
        return made.because("a template of Inductor: its time is not modelled", confidence="low")
    if kernel.bytes is None or env.gpu is None:
        return made
    us = _moving_us(kernel.kind, kernel.bytes, env.gpu)
    return replace(made, time=TimeRange(us * _LOW, us, us * _HIGH))


def _moving_us(kind: str, moved: int, gpu: Gpu) -> float:
    if kind in START_US_AND_SHARE:
        start_us, share = START_US_AND_SHARE[kind]
        return start_us + moved / (share * gpu.bandwidth) * 1e6
    return step_time(Step("kernel", family="vectorized", bytes=moved), gpu).mid_us


def as_sdpa(call: OpCall, *, trains: bool) -> OpCall | None:
    """Return the call of a fused backend's operation as one of SDPA pinned to it; None for any other.

    Where no SDPA leads to it, the program itself calls the operation, and so it stays.
    """
    made = direct_call(call, trains=trains)
    if made is None or made.sdpa is None or made.sdpa.lower_right or not is_of_sdpa(call.op):
        return made
    backend = backend_called(call.op)
    return replace(made, op=SDPA, pinned=None if backend is None else (backend,))


def _one(call: OpCall, activities: Activities) -> CallGuess:
    return CallGuess(call, (OpPart(call.op, activities),), activities)
