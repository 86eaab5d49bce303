"""What the kernel names of fused attention say, and how they were launched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.attention.outcome import Outcome, Series, looks
from tracehunch.units import join, plural, printable

if TYPE_CHECKING:
    from tracehunch.facts.model import KernelUse
    from tracehunch.verdict import Look

FEW_KERNELS: Final = 2
"""A forward of so few kernels is a fused one, whose kernel names tell what it is."""

_UNITS: Final = {
    "tensor-core": "on tensor cores",
    "cuda-core": "on CUDA cores, not tensor cores",
    "mfma": "on matrix cores (MFMA)",
    "vector": "on vector units, not MFMA",
}


def fused_kernels(series: Series) -> list[tuple[str, KernelUse, str]]:
    """List the kernels of forwards of one or two, once each, with the variants that run it and what it is."""
    users: dict[str, list[str]] = {}
    known: dict[str, tuple[KernelUse, str]] = {}
    for outcome, look in looks(series):
        compute = kernels_of(outcome)
        for use in compute if len(compute) <= FEW_KERNELS else ():
            users.setdefault(use.name, []).append(outcome.variant.name)
            known.setdefault(use.name, (use, f"{identity_text(use)}; {_launch_text(outcome, look, use)}"))
    return [(", ".join(variants), *known[name]) for name, variants in users.items()]


def kernels_of(outcome: Outcome) -> list[KernelUse]:
    """List the distinct compute kernels of one forward."""
    return [use for use in outcome.scope.kernels if use.kind == "kernel"] if outcome.scope else []


def identity_text(use: KernelUse) -> str:
    """All that a kernel's name says, in one line."""
    identity = use.identity
    if not identity.classified:
        return "no rule knows this name"
    said = [f"{identity.library} {identity.algorithm}", _UNITS.get(identity.unit, ""), identity.dtype or ""]
    said += [f"{label} {value}" for label, value in identity.fields]
    return ", ".join(printable(part) for part in said if part)


def short_identity(use: KernelUse) -> str:
    """``one kernel, flash-attention attention-forward, bf16, tile 128x128, on tensor cores``."""
    identity = use.identity
    count = "one kernel" if use.per_call == 1 else plural(use.per_call, "kernel")
    if not identity.classified:
        return f"{count} that no rule knows"
    tile = next((f"tile {value}" for label, value in identity.fields if label.startswith("tile")), "")
    said = [
        count,
        f"{identity.library} {identity.algorithm}",
        identity.dtype or "",
        tile,
        _UNITS.get(identity.unit, ""),
    ]
    return ", ".join(printable(part) for part in said if part)


def launch_text(outcome: Outcome, look: Look, use: KernelUse) -> str:
    """Say ``, launched through cuLaunchKernelEx, with no transposes``; "" where no launch is known."""
    through, transposes = _through(look, use), _transposes(outcome, look)
    return f", launched{through}, with {transposes}" if through else ""


def _launch_text(outcome: Outcome, look: Look, use: KernelUse) -> str:
    """Say ``launched by aten::_cudnn_attention_forward through cuLaunchKernelEx, with no transposes``."""
    return f"launched by {printable(use.op)}{_through(look, use)}, with {_transposes(outcome, look)}"


def _through(look: Look, use: KernelUse) -> str:
    tree = look.facts.tree
    launches = {tree.trace.name_of(int(tree.launch[row])) for row in use.rows if tree.launch[row] >= 0}
    return f" through {printable(join(sorted(launches)))}" if launches else ""


def _transposes(outcome: Outcome, look: Look) -> str:
    tree = look.facts.tree
    call = outcome.scope.scope.calls[0] if outcome.scope else None
    ops = [] if call is None else [tree.trace.name_of(int(row)) for row in call.ops]
    turned = ops.count("aten::transpose")
    return plural(turned, "transpose") if turned else "no transposes"
