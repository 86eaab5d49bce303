"""The time of an attention call as a range, per backend, from its sizes and the GPU.

Two clocks. "gpu" is what a trace shows: the sum of the call's kernels, copies and memsets. "host" is what a
benchmark measures between two events around a call that the host launches: small calls wait for the host
there, and their times are tens of microseconds whatever the GPU does.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from tracehunch.guess.model import Confidence
from tracehunch.hardware import Gpu
from tracehunch.predict.activities import TimeRange
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline.coefficients import Coefficients, Spread, coefficients
from tracehunch.predict.roofline.dims import FUSED, TIMED_DTYPES, UNFUSED, AttentionDims, Case
from tracehunch.predict.roofline.extras import extras
from tracehunch.predict.roofline.fused import fused_us, kernel_name
from tracehunch.predict.roofline.machine import Calibration, Machine, machine
from tracehunch.predict.roofline.schedule import larger
from tracehunch.predict.roofline.steps import Step, unfused_steps
from tracehunch.predict.roofline.unfused import unfused_us

Clock = Literal["host", "gpu"]

_RELATED: Final = Spread(1 / 1.25, 1.25)
"""How much wider the range is on a GPU that was not measured, but runs the same kernels as one that was."""

_UNMEASURED: Final = Spread(1 / 1.5, 1.6)
"""The same for other generations of the same vendor."""

_FOREIGN: Final = Spread(1 / 2.2, 2.2)
"""The same for another vendor's."""

_OTHER_HOST: Final = Spread(1 / 1.5, 1.5)
"""How much wider the host's share is on a machine whose host is not known."""


@dataclass(frozen=True, slots=True)
class AttentionTime:
    """A range that should hold nine of ten measurements, in us, and what it rests on."""

    low_us: float
    mid_us: float
    high_us: float
    confidence: Confidence
    why: tuple[str, ...]
    clock: Clock

    @property
    def range(self) -> TimeRange:
        """The bare range."""
        return TimeRange(self.low_us, self.mid_us, self.high_us)


@dataclass(frozen=True, slots=True)
class NoEstimate:
    """Nothing can be said of the time, and why."""

    reason: str


def attention_time(
    backend: str,
    dims: AttentionDims,
    dtype: str,
    causal: bool,
    gpu: Gpu | None,
    *,
    backward: bool = False,
    mask: bool = False,
    dropout: bool = False,
    clock: Clock = "host",
    calibration: Calibration | None = None,
) -> AttentionTime | NoEstimate:
    """Return the time of one forward (or backward alone) of a variant or SDPA backend.

    Whether the backend takes the call at all is for the dispatcher's rules to say; here it is assumed to.
    `causal` is a mask from the top left; `mask` a tensor, which fused kernels read for every score.
    `calibration` are peaks measured on the machine; they take precedence over the data sheet's and are named
    in `why`.
    """
    word = dtype_word(dtype)
    if gpu is None:
        return NoEstimate("the GPU is not known, so neither are its peaks")
    if refused := _refused(backend, word, gpu):
        return NoEstimate(refused)
    seen = machine(gpu, word, calibration)
    if seen is None:
        return NoEstimate(f"{gpu.name} has no matrix unit for {word}")
    case = Case(backend, dims, word, causal, backward)
    estimate = gpu_time(case, seen, coefficients())
    if estimate is None:
        return NoEstimate(f"{backend} has no kernel for head dimension {max(dims.head_dim, dims.value_dim)}")
    for extra in extras(backend, mask=mask, dropout=dropout):
        estimate = replace(
            estimate,
            low_us=estimate.low_us * extra.low,
            mid_us=estimate.mid_us * extra.mid,
            high_us=estimate.high_us * extra.high,
            confidence="low",
            why=(*estimate.why, extra.source),
        )
    if clock == "gpu":
        return estimate
    return with_host(case, seen, estimate, coefficients())


def gpu_time(case: Case, seen: Machine, model: Coefficients) -> AttentionTime | None:
    """Return the GPU's part alone; `None` where the backend has no kernel for the head dimension."""
    if case.backend in FUSED:
        middle = fused_us(case, seen, model)
        if middle is None:
            return None
        name = case.family
        why = f"kernel {kernel_name(case)}, by tiles and waves on {seen.sms} SMs"
    else:
        steps = _steps(case)
        middle = unfused_us(steps, seen, model)
        name = "math" if case.backend == "math" else "naive"
        why = f"{len(steps)} steps that move {sum(step.bytes for step in steps) / 1e6:.0f} MB"
    spread = model.spreads[f"{name}-{case.direction}"]
    unchecked = case.backend in UNFUSED and case.backward
    estimate = AttentionTime(
        middle * spread.low,
        middle,
        middle * spread.high,
        "low" if unchecked else "high",
        (why, *(("no backward of this variant was measured",) if unchecked else ())),
        "gpu",
    )
    return _elsewhere(estimate, seen, model)


def with_host(case: Case, seen: Machine, estimate: AttentionTime, model: Coefficients) -> AttentionTime:
    """Add what the host takes to launch the call to the GPU's time."""
    name = case.backend if case.backend in FUSED else "unfused"
    cost = model.hosts[f"{name}-{case.direction}"]
    floor = cost.us + cost.per_kernel_us * len(_steps(case))
    low, high = cost.low * floor, cost.high * floor
    if not seen.reference:
        low, high = low * _OTHER_HOST.low, high * _OTHER_HOST.high
    bound = floor > estimate.mid_us
    return AttentionTime(
        larger(estimate.low_us, low, cost.sharpness),
        larger(estimate.mid_us, floor, cost.sharpness),
        larger(estimate.high_us, high, cost.sharpness),
        "medium" if bound and estimate.confidence == "high" else estimate.confidence,
        (*estimate.why, *((f"the host takes about {floor:.0f} us to launch it",) if bound else ())),
        "host",
    )


def _steps(case: Case) -> tuple[Step, ...]:
    """Return the steps of an unfused variant, none for others."""
    if case.backend in FUSED:
        return ()
    return unfused_steps(case.backend, case.dims, case.dtype, case.causal, backward=case.backward)


def _refused(backend: str, dtype: str, gpu: Gpu) -> str:
    """Return why no time can be given, "" if one can."""
    if backend not in (*FUSED, *UNFUSED):
        return f"no model of backend {backend!r}"
    if dtype not in TIMED_DTYPES:
        return f"nothing is known of attention in {dtype}"
    if backend in ("flash", "cudnn") and dtype == "fp32":
        return f"{backend} takes no fp32"
    if backend == "cudnn" and gpu.vendor != "nvidia":
        return f"cuDNN does not run on {gpu.name}"
    if backend in ("flash", "cudnn") and gpu.vendor == "nvidia" and float(gpu.compute_capability) < 8:
        return f"{backend} needs compute capability 8.0, {gpu.name} has {gpu.compute_capability}"
    return ""


def _elsewhere(estimate: AttentionTime, seen: Machine, model: Coefficients) -> AttentionTime:
    """Widen an estimate for a GPU other than the one that was measured, and say what it was scaled by."""
    measured = f" and the {' and '.join(seen.calibrated)} rate measured here" if seen.calibrated else ""
    fitted = f"fitted on {model.fitted_on}{measured}"
    if seen.reference:
        return replace(estimate, why=(*estimate.why, fitted))
    wider = _UNMEASURED if seen.gpu.vendor == "nvidia" else _FOREIGN
    related = seen.gpu.compute_capability == model.reference.compute_capability
    if related:
        wider = _RELATED
    return replace(
        estimate,
        low_us=estimate.low_us * wider.low,
        high_us=estimate.high_us * wider.high,
        confidence="medium" if related and estimate.confidence == "high" else "low",
        why=(
            *estimate.why,
            fitted,
            f"nothing was measured on {seen.gpu.name}: scaled by its peaks and bandwidth, in a wider range",
        ),
    )
