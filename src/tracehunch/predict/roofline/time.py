"""The time of an attention call as a range, per backend, from its sizes and the GPU.

Two clocks. "gpu" is what a trace shows: the sum of the call's kernels, copies and memsets. "host" is what a
benchmark measures between two events around a call that the host launches: small calls wait for the host
there, and their times are tens of microseconds whatever the GPU does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from tracehunch.guess.model import Confidence
from tracehunch.hardware import Gpu
from tracehunch.predict.activities import TimeRange
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline.coefficients import Coefficients, Spread, coefficients
from tracehunch.predict.roofline.dims import (
    FUSED,
    TIMED_DTYPES,
    UNFUSED,
    AttentionDims,
    Case,
    element_bytes,
)
from tracehunch.predict.roofline.fused import kernel_name
from tracehunch.predict.roofline.host import with_host
from tracehunch.predict.roofline.machine import Calibration, Machine, machine
from tracehunch.predict.roofline.price import step_us
from tracehunch.predict.roofline.steps import Step
from tracehunch.units import plural, size

Clock = Literal["host", "gpu"]

_RELATED: Final = Spread(1 / 1.25, 1.25)
"""How much wider the range is on a GPU that was not measured, but runs the same kernels as one that was."""

_UNMEASURED: Final = Spread(1 / 1.5, 1.6)
"""The same for other generations of the same vendor."""

_FOREIGN: Final = Spread(1 / 2.2, 2.2)
"""The same for another vendor's."""


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


@dataclass(frozen=True, slots=True)
class Launched:
    """What is to be timed: the steps of one forward or backward of a variant or SDPA backend."""

    backend: str
    dtype: str
    backward: bool
    steps: tuple[Step, ...]

    @property
    def direction(self) -> str:
        """Forward or backward, as the model's tables have it."""
        return "backward" if self.backward else "forward"

    @property
    def operations(self) -> int:
        """How many operations are launched, memsets aside."""
        return sum(step.kind != "memset" for step in self.steps)

    @property
    def family(self) -> str:
        """The name of the range in the model's tables."""
        if self.backend in FUSED:
            return "efficient_fp32" if (self.backend, self.dtype) == ("efficient", "fp32") else self.backend
        return "math" if self.backend == "math" else "naive"


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
    """Return the time of a fused backend's own kernels for one forward (or backward alone).

    Whether the backend takes the call at all is for the dispatcher's rules to say; here it is assumed to.
    `causal` is a mask from the top left; `mask` an additive tensor that is given for every score. Copies
    around the kernels, and variants that are composed of other operations, are for `forecast` to add.
    """
    if backend in UNFUSED:
        return NoEstimate(f"{backend} is composed of other operations, see forecast")
    word = dtype_word(dtype)
    read = dims.scores * element_bytes(word) if mask else 0
    case = Case(backend, dims, word, causal, backward, read, dropout=dropout)
    launched = Launched(backend, word, backward, (Step("fused", fused=case),))
    return timings(launched, gpu, calibration).by(clock)


@dataclass(frozen=True, slots=True)
class Timings:
    """The time of what a call launches by both clocks, and the middle of each step's on the GPU, in us."""

    gpu: AttentionTime | NoEstimate
    host: AttentionTime | NoEstimate
    steps_us: tuple[float, ...] = ()

    def by(self, clock: Clock) -> AttentionTime | NoEstimate:
        """Return the time by a clock."""
        return self.gpu if clock == "gpu" else self.host


def timings(launched: Launched, gpu: Gpu | None, calibration: Calibration | None = None) -> Timings:
    """Return the time of all that a call launches.

    `calibration` are peaks measured on the machine; they take precedence over the data sheet's and are named
    in `why`.
    """
    if gpu is None:
        return _none("the GPU is not known, so neither are its peaks")
    if refused := _refused(launched.backend, launched.dtype, gpu):
        return _none(refused)
    seen = machine(gpu, launched.dtype, calibration)
    if seen is None:
        return _none(f"{gpu.name} has no matrix unit for {launched.dtype}")
    if not launched.steps:
        return _none("what it launches cannot be told")
    model = coefficients()
    prices = [step_us(step, seen, model) for step in launched.steps]
    known = tuple(us for us in prices if us is not None)
    if len(known) < len(prices):
        return _none(_unpriced(launched.steps, prices))
    estimate = summed(launched, known, seen, model)
    return Timings(estimate, with_host(launched, seen, estimate, model), known)


def _none(reason: str) -> Timings:
    none = NoEstimate(reason)
    return Timings(none, none)


def summed(
    launched: Launched, steps_us: Sequence[float], seen: Machine, model: Coefficients
) -> AttentionTime:
    """Return the GPU's part alone: the sum of all steps, each group of them with its range."""
    own = sum(us for us, step in zip(steps_us, launched.steps, strict=True) if step.fused is not None)
    rest = sum(steps_us) - own
    main, around = model.spreads[f"{launched.family}-{launched.direction}"], model.spreads["around"]
    if launched.backend in UNFUSED:
        own, rest = rest, 0.0
    estimate = AttentionTime(
        own * main.low + rest * around.low,
        own + rest,
        own * main.high + rest * around.high,
        "high",
        (_what(launched),),
        "gpu",
    )
    return _elsewhere(estimate, seen, model)


def _unpriced(steps: Sequence[Step], prices: Sequence[float | None]) -> str:
    """Say what has no cost."""
    step = next(step for step, us in zip(steps, prices, strict=True) if us is None)
    if step.fused is not None:
        dims = step.fused.dims
        widest = max(dims.head_dim, dims.value_dim)
        return f"{step.fused.backend} has no kernel for head dimension {widest}"
    return f"nothing is known of how long {step.kind} takes"


def _what(launched: Launched) -> str:
    """Say what the time is made of."""
    fused = [step.fused for step in launched.steps if step.fused is not None]
    others = [step for step in launched.steps if step.fused is None and step.kind != "memset"]
    moved = sum(step.bytes for step in others)
    if not fused:
        return f"the sum of {plural(len(others), 'step')} that move {size(moved)}"
    said = f"kernel {kernel_name(fused[0])}, by tiles and waves"
    return f"{said}, and {plural(len(others), 'step')} around it that move {size(moved)}" if others else said


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
    fitted = f"times were fitted on {model.fitted_on}{measured}"
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
