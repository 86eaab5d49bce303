"""Whether PyTorch would have picked the attention backend that ran, from the call's inputs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.errors import GuessError
from tracehunch.guess.context import context_of
from tracehunch.predict.environment import Environment, environment
from tracehunch.predict.releases import releases
from tracehunch.predict.sdpa import SdpaCall, TensorSpec, across_versions, predict_sdpa
from tracehunch.units import join

if TYPE_CHECKING:
    from tracehunch.compare.inputs import Tensor
    from tracehunch.compare.sdpa_calls import SdpaInputs
    from tracehunch.trace.model import Trace

_DTYPES: Final = {
    "bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64", "bool": "bool",
}  # fmt: skip
_FUSED: Final = ("flash", "efficient", "cudnn")


def why_it_ran(ran: str, inputs: SdpaInputs | None, trace: Trace) -> str:
    """Return why a backend ran, in a clause; "" where the trace does not say enough to tell."""
    call = None if inputs is None else _call(inputs, requires_grad=False)
    if call is None or inputs is None or ran not in (*_FUSED, "math"):
        return ""
    with_grad = _call(inputs, requires_grad=True)
    torch = context_of(trace).get("torch", "")
    env = _environment(trace, torch or _newest())
    if env is None or with_grad is None:
        return ""
    choices = _choices(call, env, known=bool(torch)) | _choices(with_grad, env, known=bool(torch))
    if None in choices or "error" in choices:
        return ""
    picked = sorted(str(choice) for choice in choices)
    whose = f"torch {env.torch_name}" if torch else f"every torch from {_oldest()} to {_newest()}"
    if ran not in choices:
        return f"for these inputs {whose} picks {join(picked, 'or')} by itself: {_by_hand(ran)}"
    if picked != [ran]:
        return ""
    reasons = [text for backend in _FUSED if (text := _refused(call, env, backend))] if ran == "math" else []
    return f"for these inputs {whose} picks {ran} by itself" + (f" ({'; '.join(reasons)})" if reasons else "")


def _by_hand(ran: str) -> str:
    others = "the others were switched off (sdpa_kernel, torch.backends.cuda.enable_*_sdp)"
    return f"{ran} was pinned, or {others}"


def _choices(call: SdpaCall, env: Environment, *, known: bool) -> set[str | None]:
    """Return what the version in use picks, or all versions whose rules are exactly known."""
    try:
        if known:
            return {predict_sdpa(call, env).chosen}
        return {choice for _, choice in across_versions(call, env)}
    except GuessError:
        return {None}


def _refused(call: SdpaCall, env: Environment, backend: str) -> str:
    answers = {answer.backend: answer for answer in predict_sdpa(call, env).answers}
    answer = next((one for name, one in answers.items() if name == backend), None)
    return "" if answer is None or answer.first is None else f"{backend}: {answer.first.words}"


def _environment(trace: Trace, torch: str) -> Environment | None:
    gpu = context_of(trace).get("device", "")
    try:
        return environment(gpu, torch) if gpu else _cpu(trace, torch)
    except GuessError:
        return None


def _cpu(trace: Trace, torch: str) -> Environment | None:
    """Without GPU work the CPU's rules hold, unless GPU work went unrecorded."""
    return environment(torch=torch, device="cpu") if not trace.header.devices else None


def _call(inputs: SdpaInputs, *, requires_grad: bool) -> SdpaCall | None:
    specs = [_spec(one, requires_grad=requires_grad) for one in (inputs.q, inputs.k, inputs.v)]
    mask = None if inputs.mask is None else _spec(inputs.mask, requires_grad=False)
    if None in specs or (inputs.mask is not None and mask is None):
        return None
    q, k, v = (one for one in specs if one is not None)
    return SdpaCall(
        q, k, v, mask=mask, dropout=inputs.dropout, is_causal=inputs.is_causal, enable_gqa=inputs.enable_gqa
    )


def _spec(tensor: Tensor, *, requires_grad: bool) -> TensorSpec | None:
    if tensor.dtype not in _DTYPES or len(tensor.strides) != len(tensor.shape):
        return None
    return TensorSpec(tensor.shape, tensor.strides, _DTYPES[tensor.dtype], requires_grad=requires_grad)


def _exact() -> list[str]:
    return [f"{one.torch[0]}.{one.torch[1]}" for one in releases().values() if one.exact]


def _newest() -> str:
    return _exact()[-1]


def _oldest() -> str:
    return _exact()[0]
