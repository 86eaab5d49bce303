"""Why attention changed: another backend, other inputs, built by hand or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.compare.attention import is_fused
from tracehunch.compare.changes import count
from tracehunch.compare.model import Cause
from tracehunch.compare.sdpa_calls import tensor_text
from tracehunch.units import join, plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.compare.causes import Scene
    from tracehunch.compare.model import Change, Use
    from tracehunch.compare.sdpa_calls import SdpaDiff
    from tracehunch.facts.model import ScopeFacts

UNKNOWN: Final = "unknown"
_NONE: Final = "none"
_STEPS: Final = (
    "add", "add_", "mul", "mul_", "div", "div_", "masked_fill", "masked_fill_", "where", "copy_", "clone",
    "contiguous", "to", "_to_copy", "reshape", "expand", "dropout", "native_dropout", "softmax", "_softmax",
    "bmm", "matmul", "tril", "triu", "fill_",
)  # fmt: skip
"""What an attention built by hand consists of, beside its products and softmax."""


def is_attention(change: Change) -> bool:
    """Whether a change is about attention's own kernels, or what its op launches beside them."""
    uses = (*change.before, *change.after)
    return any(is_fused(use) or _inside_sdpa(use) for use in uses)


def attention_causes(change: Change, scene: Scene) -> Iterator[Cause]:
    """Say what backends ran and why, and in what the calls' inputs differ."""
    first, second = backend_of(scene.pair.before), backend_of(scene.pair.after)
    if first != second and UNKNOWN not in (first, second):
        yield from _other_backend(change, first, second)
    sdpa = scene.sdpa
    if sdpa is not None and sdpa.differences and not _is_core(change):
        yield _beside(change, sdpa)
        return
    if sdpa is not None and sdpa.differences:
        same = f"SDPA stays on {second}, but " if first == second and second != _NONE else "SDPA: "
        yield Cause("sdpa-inputs", f"{same}{'; '.join(sdpa.differences)}")
    if first == second or sdpa is None:
        return
    for why, when in ((sdpa.why_before, "before"), (sdpa.why_after, "now")):
        if why:
            yield Cause("dispatcher", f"{when}, {why}", "medium")
    for entry in scene.environment.settings:
        if entry.name.startswith("sdp_") or entry.name == "deterministic":
            yield Cause("setting", f"{entry.name} is {entry.after}, it was {entry.before}")


def _is_core(change: Change) -> bool:
    """Whether a change holds attention's own kernels, fused or not, and not only what prepares its inputs."""
    return any(is_fused(use) or _multiplies(use) for use in (*change.before, *change.after))


def _multiplies(use: Use) -> bool:
    return use.identity is not None and use.identity.unit != "none"


def _beside(change: Change, sdpa: SdpaDiff) -> Cause:
    """Explain what SDPA launches beside attention itself."""
    mask = sdpa.after.call.mask if sdpa.after is not None else None
    if change.after and not change.before and mask is not None and mask.dtype == "bool":
        text = "every SDPA call turns its boolean mask into one that is added"
        return Cause("mask-conversion", f"{text} (attn_mask: {tensor_text(mask)})")
    differences = "; ".join(sdpa.differences or ())
    return Cause(
        "sdpa-inputs", f"with SDPA's inputs what it does beside attention itself changed: {differences}"
    )


def fused_attention_steps(change: Change, scene: Scene) -> Iterator[Cause]:
    """Say of other ops that as many went (or came) as there are more (or fewer) SDPA calls."""
    if scene.sdpa is None or is_attention(change):
        return
    calls = scene.sdpa.n_after - scene.sdpa.n_before
    less = count(change.before) - count(change.after)
    if not calls or not less or (calls > 0) != (less > 0) or abs(less) % abs(calls):
        return
    uses = change.before or change.after
    if not all(use.op.rpartition("::")[2] in _STEPS for use in uses):
        return
    each = int(abs(less) / abs(calls))
    what = "fewer" if less > 0 else "more"
    whose = "that SDPA does now" if less > 0 else "that SDPA did before"
    text = f"{each} {what} for each SDPA call: most likely part of the attention {whose}"
    yield Cause("attention-step", text, "medium" if abs(calls) > 1 else "low")


def _other_backend(change: Change, first: str, second: str) -> Iterator[Cause]:
    kernels = _kernels(change)
    if first == _NONE:
        steps = join(sorted({printable(use.op, 60) for use in change.before if use.op}))
        before = f"it was built from {steps}" if steps else "no SDPA call was made"
        text = f"attention runs in SDPA ({second}) now; before {before}{kernels}"
    elif second == _NONE:
        steps = join(sorted({printable(use.op, 60) for use in change.after if use.op}))
        built = f"attention is built from {steps}" if steps else "no SDPA call is made"
        text = f"{built}; before it ran in SDPA ({first}){kernels}"
    else:
        text = f"SDPA runs on {second}, it ran on {first}{kernels}"
        if "math" in (first, second):
            text += " (math computes attention step by step, the others in one fused kernel)"
    yield Cause("sdpa-backend", text)


def _kernels(change: Change) -> str:
    """``: 20 kernels a call -> 1 kernel``; nothing where both are as many, as on a CPU."""
    n_before, n_after = (
        count([use for use in uses if use.kind == "kernel"]) for uses in (change.before, change.after)
    )
    return (
        f": {plural(n_before, 'kernel')} a call -> {plural(n_after, 'kernel')}"
        if n_before and n_after and n_before != n_after
        else ""
    )


def backend_of(scope: ScopeFacts) -> str:
    """Return what attention ran on in a scope: one name, or ``flash and math``."""
    value = scope.value("sdpa.backend")
    if value is None:
        return UNKNOWN
    return join([str(one) for one in value]) if isinstance(value, tuple) else str(value)


def _inside_sdpa(use: Use) -> bool:
    return any("scaled_dot_product" in op or "_attention_" in op for op in use.path)
