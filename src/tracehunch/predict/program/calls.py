"""The calls that a program makes, recorded without a GPU: what a prediction of the whole starts from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from tracehunch.predict.ops.tensor import Tensor
from tracehunch.predict.sdpa.call import SdpaCall

Phase = Literal["forward", "backward", "optimizer"]

SDPA: Final = "aten::scaled_dot_product_attention"


@dataclass(frozen=True, slots=True)
class OpCall:
    """One call of an operation, as PyTorch's dispatcher sees it below autograd and autocast.

    `op` is the operator's name ("aten::addmm"), `overload` as in its schema ("" for the plain one). `tensors`
    are its tensor arguments in order, lists of tensors laid out flat (`options` then has the lengths of the
    lists by argument name under "list_lengths"); `devices` says where each lies ("cuda", "cpu"). `options`
    are the arguments that are no tensors, by the schema's names, those left at their defaults absent.
    `outputs` are the tensors returned.

    `sdpa` is the call in full where `op` is `SDPA`: it is recorded whole, not as what it is made of. It is
    also that of a backend's own operation which the program calls, see `direct_call`.
    `module` is the path of the innermost module ("model.layers.0.self_attn"; "" for none), `module_type` its
    class. `scopes` are the user's annotations around it, outermost first. `line` is the innermost line of the
    user's code, "file.py:12". `pinned` are the SDPA backends that a `sdpa_kernel` context allows, `None` for
    all; `autocast` whether autocast was on where it was called from.
    """

    op: str
    overload: str = ""
    tensors: tuple[Tensor, ...] = ()
    devices: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    outputs: tuple[Tensor, ...] = ()
    output_devices: tuple[str, ...] = ()
    sdpa: SdpaCall | None = None
    module: str = ""
    module_type: str = ""
    phase: Phase = "forward"
    scopes: tuple[str, ...] = ()
    line: str = ""
    pinned: tuple[str, ...] | None = None
    autocast: bool = False


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What the recording could not know: why, in which module and line, and what would tell.

    `stops`: whether nothing after it was recorded, so that all counts are what happens before it.
    """

    reason: str
    module: str = ""
    line: str = ""
    stops: bool = False
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """Everything one run of a program did, in order, on a GPU that is only pretended.

    `name` is what was run ("model:build"). `torch` is the version that recorded it, `parameters` how many
    numbers the modules hold and `parameter_bytes` how much memory they take. `settings` are process-wide
    choices that kernels depend on ("float32_matmul_precision": "highest", "grad": "off" ...).
    """

    name: str
    calls: tuple[OpCall, ...]
    obstacles: tuple[Obstacle, ...] = ()
    torch: str = ""
    parameters: int = 0
    parameter_bytes: int = 0
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
