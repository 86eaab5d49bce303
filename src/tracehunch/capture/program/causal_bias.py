"""`torch.nn.attention.bias`: what its Python code asks of the GPU, answered for the one that is pretended.

A bias is a tensor on the CPU that nothing reads: it says which triangle is meant. The attention that is given
one asks whether flash, or else the efficient kernel, could take the call, and calls its operation itself.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tracehunch.capture.program.attention import pinned_backends
from tracehunch.capture.program.replacing import replaced
from tracehunch.capture.program.tensors import spec
from tracehunch.predict.sdpa import SdpaCall, predict_sdpa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.capture.program.tape import Tape
    from tracehunch.predict.environment import Backend, Environment

_ASKED: Final[dict[str, Backend]] = {
    "can_use_flash_attention": "flash",
    "can_use_efficient_attention": "efficient",
    "can_use_cudnn_attention": "cudnn",
}

_BUILT: Final = "is_flash_attention_available"


@contextmanager
def causal_biases(torch: Any, tape: Tape, env: Environment) -> Iterator[None]:
    """Let biases be made and used; `can_use_flash_attention` and the like answer for the GPU of `env`."""
    from torch.nn.attention import bias  # noqa: PLC0415  # an optional dependency

    with ExitStack() as stack:
        stack.enter_context(patch.object(bias.CausalBias, "__new__", _new(torch), create=True))
        for owner in (torch.backends.cuda, torch.nn.attention, bias):
            for name, backend in _ASKED.items():
                if hasattr(owner, name):
                    stack.enter_context(replaced(owner, name, _can_use(torch, tape, env, backend)))
            if hasattr(owner, _BUILT):
                stack.enter_context(replaced(owner, _BUILT, lambda: env.flash_built))
        yield


def is_causal_bias(value: Any) -> bool:
    """Whether a tensor is one that only says which triangle is meant: it stays where it is."""
    from torch.nn.attention.bias import CausalBias  # noqa: PLC0415  # an optional dependency

    return isinstance(value, CausalBias)


def _new(torch: Any) -> Callable[..., Any]:
    from torch.utils._python_dispatch import _disable_current_modes  # noqa: PLC0415  # an optional dependency

    def new(cls: type, variant: Any, seq_len_q: int, seq_len_kv: int) -> Any:
        """Make a tensor of the shape that PyTorch gives one, a real one, without its memory."""
        with torch._C.DisableTorchFunction(), _disable_current_modes():  # noqa: SLF001  # torch has no public way
            held = torch.empty((), device="cpu").expand(int(variant), seq_len_q, seq_len_kv)
            return torch.Tensor._make_subclass(cls, held)  # noqa: SLF001  # as torch.nn.Parameter does

    return new


def _can_use(torch: Any, tape: Tape, env: Environment, backend: Backend) -> Callable[..., bool]:
    def can_use(params: Any, debug: bool = False) -> bool:  # noqa: ARG001  # torch's signature
        pinned = pinned_backends(torch)
        if pinned == ():
            return False
        mask = params.attn_mask
        call = SdpaCall(
            spec(params.query), spec(params.key), spec(params.value), None if mask is None else spec(mask),
            params.dropout, params.is_causal, params.enable_gqa, grad_enabled=torch.is_grad_enabled(),
        )  # fmt: skip
        answer = predict_sdpa(call, replace(env, pinned=pinned or env.pinned)).answer(backend)
        if answer is None:
            return False
        if answer.accepted is None:
            raise tape.stop(f"whether {backend} attention takes a call cannot be told: {answer.unknown}")
        return answer.accepted

    return can_use
