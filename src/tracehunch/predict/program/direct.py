"""Attention whose backend the program picks itself: it calls the backend's operation, no dispatcher is asked.

So does `torch.nn.attention.bias.causal_lower_right`, after it has asked whether flash, then efficient, could.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from tracehunch.predict.environment import Backend, Environment
from tracehunch.predict.ops.dtypes import FLOATING, dtype_word
from tracehunch.predict.ops.tensor import Tensor
from tracehunch.predict.program.calls import OpCall, Phase
from tracehunch.predict.sdpa import SdpaCall, SdpaPrediction, TensorSpec, predict_sdpa
from tracehunch.predict.sdpa.tensor import dtype_name

_MARK: Final = "_attention"

_WHOLE: Final = re.compile(r"aten::_scaled_dot_product_(flash|efficient|cudnn)_attention(_backward)?")
"""Operations on (B, H, L, D)."""

_KERNEL: Final = re.compile(r"aten::_(flash|efficient)_attention_(?:forward|(backward))")
"""Those that they call, on (B, L, H, D)."""

_BACKWARD_TENSORS: Final = 8
"""Tensors of a fused backward without a mask: gradient, q, k, v, output, log-sum-exp, seed and offset."""

_KNOWN: Final = frozenset(
    ("max_q", "max_k", "max_seqlen_q", "max_seqlen_k", "dropout_p", "is_causal", "return_debug_mask", "scale",
     "custom_mask_type", "compute_log_sumexp", "bias_requires_grad", "philox_seed", "philox_offset")
)  # fmt: skip
"""Options of the kernels' operations with which they do what they do for SDPA."""

_TRIANGLES: Final = {0: "", 1: "upper-left", 2: "lower-right"}
"""What `custom_mask_type` means."""

_PAD: Final = 8

_LIKE_BIAS: Final = ", as torch.nn.attention.bias.causal_lower_right does"


def backend_called(op: str) -> Backend | None:
    """Return the backend of which an op is the forward or backward, None for any other op."""
    found = _WHOLE.fullmatch(op) or _KERNEL.fullmatch(op)
    return None if found is None else cast("Backend", found[1])


def is_of_sdpa(op: str) -> bool:
    """Whether an op is one that SDPA itself leads to."""
    return _WHOLE.fullmatch(op) is not None


def direct_call(call: OpCall, *, trains: bool) -> OpCall | None:
    """Return a call of a backend's operation with its inputs as SDPA has them; None for any other call.

    `trains` says whether inputs require gradients where the call itself does not.
    """
    if _MARK not in call.op:
        return None
    whole, kernel = _WHOLE.fullmatch(call.op), _KERNEL.fullmatch(call.op)
    if whole is not None:
        return _direct(call, whole[1], backward=bool(whole[2]), trains=trains)
    if kernel is None or any(value is not None for name, value in call.options.items() if name not in _KNOWN):
        return None
    backward = bool(kernel[2])
    if len(call.tensors) != (_BACKWARD_TENSORS if backward else 3):
        return None  # of packed sequences, or with a bias
    if any(len(one.shape) != 4 for one in call.tensors[:4]):
        return None
    turned = tuple(_heads_first(one) if at < 4 else one for at, one in enumerate(call.tensors))
    return _direct(replace(call, tensors=turned), kernel[1], backward=backward, trains=trains)


def _direct(call: OpCall, backend: str, *, backward: bool, trains: bool) -> OpCall | None:
    given = call.tensors[1:] if backward else call.tensors
    if len(given) < 3 or any(len(one.shape) < 2 or one.dtype not in FLOATING for one in given[:3]):
        return None
    grad = bool(call.options.get("compute_log_sumexp", trains))
    q, k, v = (_spec(one, grad=grad) for one in given[:3])
    mask = _mask(backend, call.tensors, backward=backward)
    triangle = _triangle(backend, call.options, q, k)
    asked = SdpaCall(
        q, k, v, None if mask is None else _spec(mask, grad=False),
        dropout=float(call.options.get("dropout_p", 0.0)),
        is_causal=bool(triangle),
        enable_gqa=len(q.shape) > 2 and q.shape[-3] != k.shape[-3],
        scale=cast("float | None", call.options.get("scale")),
        grad_enabled=grad,
        lower_right=triangle == "lower-right",
    )  # fmt: skip
    phase: Phase = "backward" if backward else "forward"
    return replace(call, sdpa=asked, phase=phase)


def _triangle(backend: str, options: Mapping[str, Any], q: TensorSpec, k: TensorSpec) -> str:
    """Return where a causal triangle lies: flash's own ends at the last key, be there as many as queries."""
    if "custom_mask_type" in options:
        return _TRIANGLES.get(options["custom_mask_type"], "")
    if not options.get("is_causal", False):
        return ""
    return "lower-right" if backend == "flash" and q.shape[-2] != k.shape[-2] else "upper-left"


def direct_prediction(call: OpCall, env: Environment) -> SdpaPrediction:
    """Return what runs a call of `direct_call`; `env` has the backends that its context allows."""
    backend = backend_called(call.op)
    assert call.sdpa is not None
    assert backend is not None
    free = replace(call.sdpa, is_causal=call.sdpa.is_causal and not call.sdpa.lower_right, lower_right=False)
    why = f"{call.op} is called itself, past SDPA's dispatcher{_LIKE_BIAS if call.sdpa.lower_right else ''}"
    refused = _refusal(backend, free, env)
    if refused:
        return SdpaPrediction(
            None, (), (), cannot_tell=f"{why}; {refused}", why=why, exact=False, direct=True
        )
    asked: tuple[Backend, ...] = (backend,)
    if backend == "efficient" and call.sdpa.lower_right:
        asked = ("flash", "efficient")
    said = predict_sdpa(free, env)
    answers = tuple(one for one in said.answers if one.backend in asked)
    return SdpaPrediction(backend, asked, answers, ran=backend, why=why, exact=said.exact, direct=True)


def _refusal(backend: Backend, call: SdpaCall, env: Environment) -> str:
    """Return why SDPA would not give a backend a call, "" where it could: a kernel is known for such ones."""
    answer = predict_sdpa(call, replace(env, pinned=(backend,), enabled={})).answer(backend)
    if answer is None:
        return f"there is no {backend} attention on {env.device}"
    if answer.accepted is None:
        return answer.unknown
    if answer.first is not None:
        return f"SDPA would not give {backend} such a call ({answer.first.words})"
    if backend == "flash" and call.q.shape[-1] % _PAD:
        return f"it has head dim {call.q.shape[-1]}, which SDPA would pad to a multiple of {_PAD} first"
    return ""


def _mask(backend: str, tensors: Sequence[Tensor], *, backward: bool) -> Tensor | None:
    if backend == "flash":
        return None
    if not backward:
        return tensors[3] if len(tensors) > 3 else None
    if len(tensors) <= _BACKWARD_TENSORS:
        return None
    return tensors[4] if backend == "efficient" else tensors[8]


def _spec(one: Tensor, *, grad: bool) -> TensorSpec:
    return TensorSpec(
        one.shape, one.strides, dtype_name(dtype_word(one.dtype)), one.offset, requires_grad=grad
    )


def _heads_first(one: Tensor) -> Tensor:
    """Return (B, L, H, D) as (B, H, L, D)."""
    shape, strides = (
        (batch, heads, length, width) for batch, length, heads, width in (one.shape, one.strides)
    )
    return Tensor(shape, one.dtype, strides, one.offset)
