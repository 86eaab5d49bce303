"""SDPA calls of a program, alike ones together: what runs them, why nothing else, known hazards."""

from collections import defaultdict
from collections.abc import Sequence

from tracehunch.predict.environment import Environment
from tracehunch.predict.program.amounts import amounts
from tracehunch.predict.program.attention import pinned
from tracehunch.predict.program.model import CallGuess, Hazard, SdpaGuess
from tracehunch.predict.sdpa import SdpaCall, SdpaPrediction, hazards
from tracehunch.predict.sdpa.tensor import TensorSpec

_SHORT = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64"}


def sdpa_calls(calls: Sequence[CallGuess], env: Environment) -> tuple[SdpaGuess, ...]:
    """Return the SDPA calls of the forward, alike ones together, in the order of the first of each kind."""
    trains = any(one.sdpa is not None and one.call.phase == "backward" for one in calls)
    groups: dict[object, list[CallGuess]] = defaultdict(list)
    for one in calls:
        if one.sdpa is not None and one.call.phase != "backward":
            groups[one.call.sdpa, one.call.pinned, one.call.line].append(one)
    return tuple(_group(same, env, trains=trains) for same in groups.values())


def _group(same: Sequence[CallGuess], env: Environment, *, trains: bool) -> SdpaGuess:
    first = same[0]
    call, picked = first.call.sdpa, first.sdpa
    assert call is not None
    assert picked is not None
    found = hazards(call, pinned(first.call, env), picked)
    return SdpaGuess(
        modules=tuple(dict.fromkeys(one.call.module for one in same)),
        line=first.call.line,
        calls=len(same),
        backend=backend_of(picked),
        reasons=refusals(picked),
        hazards=tuple(Hazard(one.id, str(one)) for one in found if trains or not one.of_backward),
        call=described(call),
        phase=first.call.phase,
        gpu_time_us=amounts(same).gpu_time_us,
    )


def backend_of(picked: SdpaPrediction) -> str | None:
    """Return the backend that runs, "error" for a call that raises, None where it cannot be told."""
    if picked.raises is not None or picked.chosen == "error":
        return "error"
    return picked.ran


def refusals(picked: SdpaPrediction) -> tuple[str, ...]:
    """Return why the others are not taken: what each refuses first, and what set the order."""
    said = [picked.raises] if picked.raises else []
    said += [picked.cannot_tell] if picked.cannot_tell else [picked.why] if picked.direct else []
    for backend in picked.order:
        answer = picked.answer(backend)
        if answer is not None and answer.first is not None and backend != picked.ran:
            said.append(str(answer.first))
    if not said and picked.ran is not None:
        asked = ", ".join(picked.order)
        said.append(f"{picked.ran} is asked first and takes the call (asked in this order: {asked})")
    return tuple(said)


def described(call: SdpaCall) -> str:
    """Return a call's inputs in a phrase."""
    dtype = _SHORT.get(call.q.dtype, call.q.dtype)
    parts = [f"q {_shape(call.q)}"]
    if call.k.shape != call.q.shape or call.v.shape != call.k.shape:
        parts.append(f"k {_shape(call.k)}")
    if call.v.shape != call.k.shape:
        parts.append(f"v {_shape(call.v)}")
    parts.append(dtype)
    if call.mask is not None:
        parts.append(f"{_SHORT.get(call.mask.dtype, call.mask.dtype)} mask {_shape(call.mask)}")
    parts += ["causal, ending bottom-right" if call.lower_right else "causal"] if call.is_causal else []
    parts += [f"dropout {call.dropout:g}"] if call.dropout else []
    parts += ["enable_gqa"] if call.enable_gqa else []
    parts += ["needs gradients"] if call.requires_grad else []
    return ", ".join(parts)


def _shape(one: TensorSpec) -> str:
    return f"({','.join(str(size) for size in one.shape)})"
