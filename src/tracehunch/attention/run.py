"""Run one attention variant: try it, check its result, and let it be profiled."""

from __future__ import annotations

import gc
import warnings
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tracehunch.attention.inputs import make_inputs, with_mask
from tracehunch.attention.memory import is_out_of_memory, out_of_memory, shortage
from tracehunch.attention.verify import Verification, verify
from tracehunch.errors import CaptureError
from tracehunch.units import size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.attention.outcome import Device
    from tracehunch.attention.variant import Inputs, Variant
    from tracehunch.attention.workload import Workload

VARIANT_ERRORS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a variant may raise and the rest of the series goes on; all PyTorch errors are RuntimeErrors."""

_REFUSALS: Final = ("No available kernel", "No viable backend")
"""What PyTorch says when the pinned backend cannot take the call; its reasons come as warnings."""

_PINNING: Final = "runtime disabled"
"""Part of the warnings about backends that were turned off by pinning another one."""


class RefusedError(CaptureError):
    """PyTorch will not run this backend on these inputs; the text is its own reason."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The inputs of a workload, on the device where variants run."""

    workload: Workload
    device: Device
    inputs: Inputs


def set_up(workload: Workload, device: Device) -> Bench:
    """Make the inputs of a workload on a device.

    Raises:
        CaptureError: they do not fit, or the device does not take them.

    """
    try:
        return Bench(workload, device, make_inputs(workload, device.kind))
    except VARIANT_ERRORS as error:
        what = f"q, k and v of {workload}"
        if not is_out_of_memory(error):
            raise CaptureError(f"cannot make {what}", _first_line(error)) from error
        scores = f"one score matrix would be {size(workload.scores_bytes)}"
        raise CaptureError(
            f"no memory for {what}", scores, "try a smaller --batch, --heads or --seq"
        ) from error


def try_once(variant: Variant, bench: Bench, *, check: bool) -> Verification | None:
    """Run a variant once; with ``check`` compare its output with the reference.

    Raises:
        RefusedError: PyTorch does not run its backend on these inputs.
        CaptureError: no memory, or whatever else it raised, in one line.

    """
    short = shortage(variant, bench.workload) if bench.device.kind == "cpu" else None
    if short is not None:
        raise CaptureError(short)
    with running(variant, bench) as forward:
        output = forward()
        _wait(bench.device)  # errors of a kernel come late
        return verify(output, bench.inputs, bench.workload.dtype) if check else None


@contextmanager
def running(variant: Variant, bench: Bench) -> Iterator[Callable[[], Any]]:
    """Yield a function that computes one forward, with the variant's backend pinned.

    Raises:
        CaptureError: as ``try_once``, for whatever happens within.

    """
    _release(bench.device)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with _pinned(variant):
                masked = variant.takes_mask and bench.workload.causal
                inputs = with_mask(bench.inputs) if masked else bench.inputs
                yield lambda: variant.forward(inputs)
        except VARIANT_ERRORS as error:
            raise _told(error, variant, bench.workload, said) from error


def _pinned(variant: Variant) -> Any:
    """Only the variant's own SDPA backend enabled, if it has one."""
    if not variant.backend:
        return nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: PLC0415  # an optional dependency

    return sdpa_kernel(getattr(SDPBackend, variant.backend))


def _told(
    error: Exception, variant: Variant, workload: Workload, said: list[warnings.WarningMessage]
) -> CaptureError:
    """Tell what a variant raised in one line that says what to do."""
    if is_out_of_memory(error):
        return CaptureError(out_of_memory(variant, workload))
    first = _first_line(error)
    if any(refusal in first for refusal in _REFUSALS):
        return RefusedError(" ".join((first, *_reasons(said))))
    return CaptureError(
        f"{type(error).__name__}: {first}", todo=f"to look into it, run it alone: --variant {variant.name}"
    )


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _reasons(said: list[warnings.WarningMessage]) -> list[str]:
    """PyTorch's reasons, each once; not those that only say which backends pinning turned off."""
    texts = (str(warning.message).split(" (Triggered internally")[0].strip() for warning in said)
    return list(
        dict.fromkeys(text for text in texts if _PINNING not in text and not text.endswith("because:"))
    )


def _wait(device: Device) -> None:
    if device.kind == "cuda":
        import torch  # noqa: PLC0415  # an optional dependency

        torch.cuda.synchronize()


def _release(device: Device) -> None:
    """Give back what variants before held; an exception may still hold tensors."""
    if device.kind == "cuda":
        gc.collect()
        import torch  # noqa: PLC0415  # an optional dependency

        torch.cuda.empty_cache()
