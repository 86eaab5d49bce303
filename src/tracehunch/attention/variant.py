"""Variant: one way to compute attention, with its textbook guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.attention.workload import Workload
    from tracehunch.guess import Claim

DeviceKind = Literal["cuda", "cpu"]
"""Where a variant runs; ``cuda`` is PyTorch's name for AMD GPUs too."""

NAIVE_LABEL: Final = "attn_fwd"
SDPA_LABEL: Final = "sdpa_fwd"


@dataclass(frozen=True, slots=True)
class Inputs:
    """Tensors of one workload on one device; ``Any`` because torch is optional.

    ``mask`` is a boolean (seq, seq), True where a query must not look, made before anything is timed; None
    where the workload is not causal or the variant takes no mask. ``scale`` is 1/sqrt(head_dim).
    """

    q: Any
    k: Any
    v: Any
    mask: Any
    scale: float
    groups: int
    causal: bool


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to compute attention.

    ``changed`` says in one line what is different from the variant before it in the series. ``label`` is the
    ``record_function`` name around one forward. ``backend`` is the SDPA backend it is pinned to (a member of
    ``torch.nn.attention.SDPBackend``), "" for none. ``forward`` computes (batch, heads, seq, head_dim).
    ``textbook`` states what the mathematics says a profile of one forward shows. ``takes_mask``: it applies a
    mask tensor. ``score_matrices`` is how many (batch, heads, seq, seq) tensors it holds at once at the
    least.
    """

    name: str
    changed: str
    label: str
    forward: Callable[[Inputs], Any]
    textbook: Callable[[Workload, DeviceKind], tuple[Claim, ...]]
    backend: str = ""
    takes_mask: bool = False
    score_matrices: int = 0
