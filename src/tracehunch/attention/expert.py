"""The expert guess: what PyTorch itself does with a variant on a device and version, as ``predict`` has it.

Kernels, copies, memsets and the backend are claimed as far as they can be told, and the GPU time as a range
of no more than medium confidence: clocks and other work move it. There is none of leaf ops, nor on GPUs whose
kernels are not known.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tracehunch.errors import GuessError
from tracehunch.guess import Claim, Guess
from tracehunch.hardware import find_gpu
from tracehunch.predict.environment import Environment, environment
from tracehunch.predict.forecast import BY_HAND, Forecast, forecast, leaders, pinned_to
from tracehunch.predict.roofline import AttentionTime, Calibration
from tracehunch.predict.sdpa import SdpaCall, TensorSpec, sdpa_call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.attention.outcome import Device
    from tracehunch.attention.variant import Inputs, Variant
    from tracehunch.attention.workload import Workload
    from tracehunch.guess.model import Confidence

_PATCH: Final = 100
_RANGE: Final = ".4g"
_LEADERS: Final = 1
"""Ops that are claimed to lead at most: the first is what people guess."""


@dataclass(frozen=True, slots=True)
class Expert:
    """The expert guess of a variant, or why there is none.

    ``raises`` is the error that the forward is expected to end in, with what leads to it; None if it is
    expected to run, or that cannot be told. ``untold`` says why nothing is guessed; "" where something is.
    """

    guess: Guess
    raises: str | None = None
    untold: str = ""

    @property
    def guesses(self) -> bool:
        """Whether anything is guessed."""
        return not self.untold


def expert_of(
    variant: Variant,
    workload: Workload,
    device: Device,
    inputs: Inputs | None = None,
    calibration: Calibration | None = None,
) -> Expert:
    """Make the expert guess to seal before the variant is looked at.

    ``inputs`` are the tensors that it will be given, for their strides; without them they are contiguous.
    ``calibration`` are peaks measured on the device.
    """
    context = {
        "variant": variant.name,
        "workload": str(workload),
        "device": device.name,
        "torch": device.torch,
        "cudnn": str(device.cudnn or ""),
    }
    empty = Guess((), context)
    try:
        env = _environment(device)
        known = forecast(variant.name, _call(workload, inputs), env, clock="gpu", calibration=calibration)
    except GuessError as error:
        return Expert(empty, untold=error.what)
    if known.raises is not None:
        return Expert(empty, raises=_error(known))
    claims = (*_claims(known, variant.label), *_leader(variant, known))
    if not claims:
        return Expert(empty, untold="; ".join(known.forward.reasons) or "what it runs cannot be told")
    return Expert(Guess(claims, context))


def cudnn_number(text: str) -> int | None:
    """Return a version of cuDNN as ``torch.backends.cudnn.version()`` gives it: 91900, also for ``9.19``."""
    parts = text.split(".")
    if not all(part.isdecimal() for part in parts):
        return None
    if len(parts) == 1:
        return int(parts[0])
    major, minor, patch = (*(int(part) for part in parts[:3]), 0)[:3]
    return (major * _PATCH + minor) * _PATCH + patch


def _environment(device: Device) -> Environment:
    """Return where the call will run.

    Raises:
        GuessError: the expert does not know this device or version.

    """
    if device.kind == "cpu":
        raise GuessError("it knows kernels on GPUs, not the leaf ops of a CPU")
    gpu = find_gpu(device.name)
    if gpu is None:
        raise GuessError(f"{device.name} is not among the GPUs that it knows")
    if gpu.vendor != "nvidia":
        raise GuessError(f"what attention runs on {device.name} is not known kernel by kernel")
    if device.cudnn is None:
        raise GuessError("the version of cuDNN, on which PyTorch's choice depends, is not known")
    # settings of this process are none of a recording's
    env = {} if device.recorded else dict(os.environ)
    return environment(gpu, device.torch, device.cudnn, env=env)


def call_of(workload: Workload) -> SdpaCall:
    """Describe the call of a workload, its tensors contiguous."""
    return sdpa_call(
        workload.batch,
        workload.heads,
        workload.seq,
        workload.head_dim,
        kv_heads=workload.kv_heads,
        dtype=workload.dtype,
        is_causal=workload.causal,
        enable_gqa=workload.groups > 1,
    )


def _call(workload: Workload, inputs: Inputs | None) -> SdpaCall:
    """Describe the call; that a variant by hand takes a causal mask as a tensor, its own rules know."""
    made = call_of(workload)
    if inputs is None:
        return made
    q, k, v = (_spec(tensor, workload.dtype) for tensor in (inputs.q, inputs.k, inputs.v))
    return replace(made, q=q, k=k, v=v)


def _spec(tensor: Any, dtype: str) -> TensorSpec:
    """Describe a tensor with its real strides."""
    return TensorSpec(
        tuple(tensor.shape), tuple(tensor.stride()), dtype, tensor.storage_offset(), tensor.requires_grad
    )


def _error(known: Forecast) -> str:
    """Return the error with what makes the pinned backends refuse the call, and what to change."""
    pinned = pinned_to(known.variant, Environment((0, 0))).pinned
    answers = () if known.sdpa is None else known.sdpa.answers
    said = [str(one.first) for one in answers if one.first is not None and one.backend in pinned]
    return f"{known.raises or ''} ({'; '.join(said)})" if said else known.raises or ""


def _claims(known: Forecast, label: str) -> Iterator[Claim]:
    """Claim what can be told of one forward."""
    forward = known.forward
    why = "; ".join(forward.reasons)
    counts = {
        "kernels": forward.kernel_count, "copies": forward.copy_count, "memsets": forward.memsets,
    }  # fmt: skip
    for key, value in counts.items():
        if value is not None:
            yield Claim(key, "==", value, label, "expert", why, forward.confidence, "count")
    if known.backend is not None:
        yield Claim("sdpa.backend", "==", known.backend, label, "expert", _chosen(known), unit="text")
    time = known.time
    if isinstance(time, AttentionTime) and time.confidence != "low":
        span = (float(f"{time.low_us:{_RANGE}}"), float(f"{time.high_us:{_RANGE}}"))
        yield Claim(
            "gpu_time", "in", span, label, "expert", "; ".join(time.why), _lowered(time.confidence), "us"
        )


def _leader(variant: Variant, known: Forecast) -> Iterator[Claim]:
    """Claim the ops that lead by GPU time where attention is done by hand and some clearly do."""
    time = known.time
    if variant.name not in BY_HAND or not isinstance(time, AttentionTime) or time.confidence == "low":
        return
    ops = tuple(op.removeprefix("aten::").rstrip("_") for op in leaders(known.forward)[:_LEADERS])
    if ops:
        why = "the sum of its steps in the model of time"
        yield Claim("dominant", "leads", ops, variant.label, "expert", why, _lowered(time.confidence), "text")


def _lowered(confidence: Confidence) -> Confidence:
    """Claim a time with less confidence than its model has: clocks and other work move it."""
    return "medium" if confidence == "high" else "low"


def _chosen(known: Forecast) -> str:
    """Say why a backend runs; "" where the variant makes no SDPA call."""
    return "no SDPA call is made" if known.sdpa is None else f"the dispatcher's rules pick {known.backend}"
