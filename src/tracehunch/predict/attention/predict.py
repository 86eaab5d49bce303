"""What one attention call puts on the GPU, for every variant, forward and backward."""

from dataclasses import replace
from typing import Final, Protocol

from tracehunch.errors import GuessError
from tracehunch.guess.model import Confidence
from tracehunch.predict.activities import Activities, cannot_tell, total
from tracehunch.predict.attention import composed, cudnn, efficient, flash, naive
from tracehunch.predict.attention.program import Program
from tracehunch.predict.attention.views import broadcast
from tracehunch.predict.environment import Backend, Environment
from tracehunch.predict.roofline.dims import AttentionDims
from tracehunch.predict.roofline.work import attention_work
from tracehunch.predict.sdpa import SdpaCall, SdpaPrediction, predict_sdpa
from tracehunch.predict.sdpa.raising import NO_KERNEL
from tracehunch.predict.sdpa.tensor import TensorSpec

VARIANTS: Final = ("naive", "naive_inplace", "math", "flash", "efficient", "cudnn", "auto")
"""The formula by hand, its mask filled out of place or in place; SDPA pinned to a backend; SDPA as it is."""

_PINNED: Final[dict[str, Backend]] = {
    "math": "math",
    "flash": "flash",
    "efficient": "efficient",
    "cudnn": "cudnn",
}
_MEASURED: Final = ((2, 11), (9, 0))
_KNOWN_FROM: Final = (2, 9)
_KNOWN_TO: Final = (2, 14)


class _Backend(Protocol):
    """A module that knows a backend's kernels."""

    def forward(self, program: Program, call: SdpaCall) -> TensorSpec: ...

    def backward(self, program: Program, call: SdpaCall, gradient: TensorSpec) -> None: ...


_BACKENDS: Final[dict[str, _Backend]] = {
    "math": composed,
    "flash": flash,
    "efficient": efficient,
    "cudnn": cudnn,
}


def predict_attention(
    variant: str,
    call: SdpaCall,
    env: Environment,
    *,
    backward: bool = False,
    gradient: TensorSpec | None = None,
    picked: SdpaPrediction | None = None,
) -> Activities:
    """Return what one forward of a variant runs, or with `backward` its backward alone.

    `variant` is one of `VARIANTS`, or that with "sdpa_" in front. The backward goes from the gradient of the
    output, (batch, heads, queries, value_dim), to those of q, k and v, all of which require one; it is laid
    out as the output unless `gradient` says otherwise (that of `out.sum()` is one number, expanded). Adding
    gradients up or copying them into leaves is no part of it. `picked` is `predict_sdpa` of the same call and
    environment, for "auto", where it was asked already. The time is left out.

    Raises:
        GuessError: no such variant.

    """
    parts = attention_steps(variant, call, env, backward=backward, gradient=gradient, picked=picked)
    found = total(parts)
    return found.because(confidence=_confidence(found, env))


def attention_steps(
    variant: str,
    call: SdpaCall,
    env: Environment,
    *,
    backward: bool = False,
    gradient: TensorSpec | None = None,
    picked: SdpaPrediction | None = None,
) -> tuple[Activities, ...]:
    """Return the same one operation after another; their kernels name the op that launches them.

    Raises:
        GuessError: no such variant.

    """
    name = _known(variant)
    if env.device == "cpu":
        return (Activities(reasons=("a CPU runs no GPU kernels",)),)
    if env.device != "cuda":
        return (cannot_tell(f"what attention runs on {env.device} is not known kernel by kernel"),)
    if any(t.numel == 0 for t in call.inputs):
        return (cannot_tell("without elements, PyTorch answers by small operations of its own"),)
    program = Program(env)
    try:
        if name in ("naive", "naive_inplace"):
            return _by_hand(name, call, program, gradient, backward=backward)
        return _sdpa(name, call, program, gradient, picked, backward=backward)
    except LookupError as unknown:
        return (cannot_tell(str(unknown.args[0])),)


def _by_hand(
    name: str, call: SdpaCall, program: Program, gradient: TensorSpec | None, *, backward: bool
) -> tuple[Activities, ...]:
    if naive.heads_per_key(call) == 1 and broadcast(call.q.shape[:-2], call.k.shape[:-2]) is None:
        return (Activities(raises=_no_broadcast(call)),)
    out = naive.forward(program, call, in_place=name == "naive_inplace")
    if backward:
        program = Program(program.env)
        naive.backward(program, call, gradient or out)
    return tuple(program.parts)


def _sdpa(
    name: str,
    call: SdpaCall,
    program: Program,
    gradient: TensorSpec | None,
    picked: SdpaPrediction | None,
    *,
    backward: bool,
) -> tuple[Activities, ...]:
    env = program.env
    if name in _PINNED:
        picked = predict_sdpa(call, replace(env, pinned=(_PINNED[name],)))
    elif picked is None:
        picked = predict_sdpa(call, env)
    if picked.raises is not None:
        return (_raised(picked.raises),)
    if picked.ran is None or picked.ran not in _BACKENDS:
        return (cannot_tell(picked.cannot_tell or "PyTorch answers this call without a backend"),)
    if picked.ran == "flash" and env.flash_version != "FA2":
        return (cannot_tell(f"the kernels of {env.flash_version} are not known"),)
    backend = _BACKENDS[picked.ran]
    out = backend.forward(program, call)
    if backward:
        program = Program(env)
        backend.backward(program, call, gradient or out)
    if picked.ran != "math":
        program.parts.append(_work(call, backward=backward))
    return tuple(program.parts)


def _known(variant: str) -> str:
    name = variant.removeprefix("sdpa_")
    if name not in VARIANTS:
        todo = f"use one of {', '.join(VARIANTS)}"
        raise GuessError(f"attention variant {variant!r} is not known", "", todo)
    return name


def _raised(error: str) -> Activities:
    if error == NO_KERNEL:
        return Activities(raises=error)
    why = "what runs before the error is not known"
    return Activities(kernels=None, copies=None, memsets=None, raises=error, reasons=(why,))


def _work(call: SdpaCall, *, backward: bool) -> Activities:
    """Return a fused kernel's FLOPs (causal: of the pairs that the mask leaves) and least bytes."""
    batch, heads, queries, head_dim = call.q.shape
    kv_heads, keys = call.k.shape[1:3]
    dims = AttentionDims(batch, heads, queries, keys, head_dim, kv_heads, call.v.shape[3])
    training = call.requires_grad and not backward
    work = attention_work(dims, call.q.dtype, call.is_causal, backward=backward, training=training)
    return Activities(flops=work.flops, bytes=work.least_bytes)


def _confidence(found: Activities, env: Environment) -> Confidence:
    """High where it was measured, medium where version or GPU is another that is known to do alike."""
    version, capability = _MEASURED
    if env.torch == version and env.compute_capability == capability:
        return "high"
    if not _KNOWN_FROM <= env.torch <= _KNOWN_TO or env.compute_capability is None:
        return "low"
    of_cudnn = any(kernel.library == "cudnn" for kernel in found.kernels or ())  # it picks engines by GPU
    return "low" if of_cudnn and env.compute_capability != capability else "medium"


def _no_broadcast(call: SdpaCall) -> str:
    at, one, other = next(
        (at, one, other)
        for at, (one, other) in enumerate(zip(call.q.shape, call.k.shape, strict=False))
        if one != other and 1 not in (one, other)
    )
    return (
        f"The size of tensor a ({one}) must match the size of tensor b ({other}) "
        f"at non-singleton dimension {at}"
    )
