"""What one attention call puts on the GPU, for every variant, forward and backward."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from tracehunch.errors import GuessError
from tracehunch.guess.model import Confidence
from tracehunch.predict.activities import COUNTED, Activities, cannot_tell, total
from tracehunch.predict.attention import composed, cudnn, efficient, flash, naive
from tracehunch.predict.attention.memory import too_large
from tracehunch.predict.attention.program import Part, Program, UntoldError
from tracehunch.predict.attention.views import broadcast
from tracehunch.predict.environment import Backend, Environment
from tracehunch.predict.sdpa import SdpaCall, SdpaPrediction, predict_sdpa
from tracehunch.predict.sdpa.raising import NO_KERNEL
from tracehunch.predict.sdpa.tensor import TensorSpec

VARIANTS: Final = ("naive", "naive_inplace", "math", "flash", "efficient", "cudnn", "auto")
"""The formula by hand, its mask filled out of place or in place; SDPA pinned to a backend; SDPA as it is."""

BY_HAND: Final = ("naive", "naive_inplace")
"""Variants that make no SDPA call."""

_SDPA: Final = "aten::scaled_dot_product_attention"

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
    gradients up or copying them into leaves is no part of it. `picked` is `predict_sdpa` of the same call in
    the environment `pinned_to` the variant, where it was asked already. The time is left out.

    Raises:
        GuessError: no such variant.

    """
    parts = attention_parts(variant, call, env, backward=backward, gradient=gradient, picked=picked)
    return activities_of(parts, env)


def activities_of(parts: Iterable[Part], env: Environment) -> Activities:
    """Return what all parts of a call run, with the confidence that is due in an environment."""
    found = total(part.activities for part in parts)
    sure = _confidence(found, env)
    told = found.kernels is not None and env.device == "cuda"
    return found.because(*((COUNTED,) if sure != "high" and told else ()), confidence=sure)


def attention_parts(
    variant: str,
    call: SdpaCall,
    env: Environment,
    *,
    backward: bool = False,
    gradient: TensorSpec | None = None,
    picked: SdpaPrediction | None = None,
) -> tuple[Part, ...]:
    """Return the same one operation after another, with what the model of time needs.

    Raises:
        GuessError: no such variant.

    """
    run = attention_run(variant, call, env, backward=backward, gradient=gradient, picked=picked)
    return run.backward if backward else run.forward


@dataclass(frozen=True, slots=True)
class Run:
    """The parts of a forward and of its backward; where nothing can be told, both say why."""

    forward: tuple[Part, ...]
    backward: tuple[Part, ...] = ()


def attention_run(
    variant: str,
    call: SdpaCall,
    env: Environment,
    *,
    backward: bool = True,
    gradient: TensorSpec | None = None,
    picked: SdpaPrediction | None = None,
) -> Run:
    """Return forward and backward, as `attention_parts` has them; without `backward` the first alone.

    Raises:
        GuessError: no such variant.

    """
    name = _known(variant)
    if env.device != "cuda":
        return _elsewhere(name, call, env, picked)
    if any(t.numel == 0 for t in call.inputs):
        return _untold("without elements, PyTorch answers by small operations of its own")
    try:
        if name in BY_HAND:
            return _by_hand(name, call, env, gradient, backward=backward)
        return _sdpa(
            call, env, gradient, picked or predict_sdpa(call, pinned_to(name, env)), backward=backward
        )
    except UntoldError as unknown:
        return _untold(str(unknown))


def _elsewhere(name: str, call: SdpaCall, env: Environment, picked: SdpaPrediction | None) -> Run:
    """Return what is known of devices other than CUDA's: on ROCm, which shares its code, the error."""
    if env.device == "rocm" and (error := _error_elsewhere(name, call, env, picked)):
        return _both(_raised(error))
    if env.device == "cpu":
        return _both(Activities(reasons=("a CPU runs no GPU kernels",)))
    return _untold(f"what attention runs on {env.device} is not known kernel by kernel")


def _error_elsewhere(name: str, call: SdpaCall, env: Environment, picked: SdpaPrediction | None) -> str:
    """Return the error that a call ends in whatever the GPU's kernels are, "" for none that is known."""
    if name not in BY_HAND:
        return (picked or predict_sdpa(call, pinned_to(name, env))).raises or ""
    if all(t.numel for t in call.inputs) and _heads_misfit(call):
        return _no_broadcast(call)
    try:
        return naive.mask_error(call, in_place=name == "naive_inplace")
    except UntoldError:
        return ""


def _heads_misfit(call: SdpaCall) -> bool:
    """Whether queries and keys neither broadcast nor group."""
    return naive.heads_per_key(call) == 1 and broadcast(call.q.shape[:-2], call.k.shape[:-2]) is None


def _by_hand(
    name: str, call: SdpaCall, env: Environment, gradient: TensorSpec | None, *, backward: bool
) -> Run:
    if _heads_misfit(call):
        return _both(Activities(raises=_no_broadcast(call)))
    if error := naive.mask_error(call, in_place=name == "naive_inplace"):
        return _both(Activities(raises=error))
    if reason := too_large(call, env, scores=True):
        return _untold(reason)
    program, after = Program(env), Program(env)
    out = naive.forward(program, call, in_place=name == "naive_inplace")
    if backward:
        naive.backward(after, call, gradient or out)
    return Run(tuple(program.parts), tuple(after.parts))


def _sdpa(
    call: SdpaCall, env: Environment, gradient: TensorSpec | None, picked: SdpaPrediction, *, backward: bool
) -> Run:
    if picked.raises is not None:
        return _both(_raised(picked.raises))
    if picked.ran is None or picked.ran not in _BACKENDS:
        return _untold(picked.cannot_tell or "PyTorch answers this call without a backend")
    if picked.ran == "flash" and env.flash_version != "FA2":
        return _untold(f"the kernels of {env.flash_version} are not known")
    if reason := too_large(call, env, scores=picked.ran == "math"):
        return _untold(reason)
    backend, program, after = _BACKENDS[picked.ran], Program(env, _SDPA), Program(env, _SDPA)
    out = backend.forward(program, call)
    if backward:
        backend.backward(after, call, gradient or out)
    return Run(tuple(program.parts), tuple(after.parts))


def pinned_to(variant: str, env: Environment) -> Environment:
    """Return the environment in which a variant makes its SDPA call."""
    name = variant.removeprefix("sdpa_")
    return replace(env, pinned=(_PINNED[name],)) if name in _PINNED else env


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


def _untold(reason: str) -> Run:
    return _both(cannot_tell(reason))


def _both(found: Activities) -> Run:
    return Run((Part(found),), (Part(found),))


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
