"""What a GPU can do: data-sheet peaks, peaks measured on the machine, and its speed next to the reference's.

The model of time is fitted on one GPU, the reference. For any other it is scaled: what waits for memory by
the bandwidth, what the tensor cores do by their peak per SM, the rest by clock and SMs. The clock follows
from the data sheet's float32 peak: lanes of an SM x 2 x clock x SMs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tracehunch.hardware import Gpu
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline.coefficients import Reference, coefficients

_LANES: Final[Mapping[str, int]] = {"7.0": 64, "7.5": 64, "8.0": 64}
"""Float32 lanes of an SM by compute capability, 128 where it is not here. Source: CUDA C++ Programming Guide,
"Arithmetic Instructions"."""

_LEGACY: Final[Mapping[str, float]] = {"9.0": 0.62, "10.0": 0.3, "10.3": 0.3}
"""Share of the tensor cores' peak that instructions of older generations (mma.sync) reach, where newer ones
(wgmma, tcgen05) reach more. Source: 9.0 from published measurements of mma.sync on an H100 (about 62 % of
wgmma's rate); 10.x is an estimate. Only GPUs other than the reference depend on it."""


_SAME: Final = 0.15
"""Measured ceilings of the reference GPU that are so close to the model's are the same."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Peaks that the caller measured on the machine.

    A large copy (bytes/s, read and written together) and large matrix products (FLOP/s) by data type,
    "bf16" and the like.
    """

    copy_bytes_per_s: float | None = None
    matmul_flops: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The roof: FLOP/s by data type and bytes/s, and where they come from ("data sheet" or "measured")."""

    flops: float
    bandwidth: float
    flops_source: str
    bandwidth_source: str

    @property
    def ridge(self) -> float:
        """FLOPs per byte above which arithmetic is the limit."""
        return self.flops / self.bandwidth


@dataclass(frozen=True, slots=True)
class Machine:
    """A GPU as the model of time sees it; rates are those of the reference times the GPU's advantage.

    `bandwidth` bytes/us of a large copy.
    `clock`, `tensor`, `legacy_tensor` are speeds of one SM, `general` that of all SMs' general units, the
    reference's being 1. `matrix_speed` and `fp32_speed` are rates of products measured here next to what the
    data sheet lets expect. `reference` is whether the model was fitted on this GPU; `calibrated` says which
    peaks the caller measured.
    """

    gpu: Gpu
    sms: int
    bandwidth: float
    clock: float
    tensor: float
    legacy_tensor: float
    general: float
    reference: bool
    matrix_speed: float = 1.0
    fp32_speed: float = 1.0
    calibrated: tuple[str, ...] = ()


def ceilings(gpu: Gpu, dtype: str, calibration: Calibration | None = None) -> Ceilings | None:
    """Return the roof for a data type's matrix products; `None` where the GPU has no such unit.

    Float32 is the general units' peak, as PyTorch multiplies it unless TF32 is allowed.
    """
    word = dtype_word(dtype)
    flops: float | None = gpu.fp32_flops if word == "fp32" else gpu.matrix_peak(word)
    bandwidth, source, bandwidth_source = gpu.bandwidth, "data sheet", "data sheet"
    if calibration is not None and word in calibration.matmul_flops:
        flops, source = calibration.matmul_flops[word], "measured"
    if calibration is not None and calibration.copy_bytes_per_s is not None:
        bandwidth, bandwidth_source = calibration.copy_bytes_per_s, "measured"
    if flops is None:
        return None
    return Ceilings(flops, bandwidth, source, bandwidth_source)


def machine(gpu: Gpu, dtype: str, calibration: Calibration | None = None) -> Machine | None:
    """Return a GPU next to the reference; `None` where it has no matrix unit for the data type."""
    reference = coefficients().reference
    peak = gpu.matrix_peak("bf16" if dtype == "fp32" else dtype)
    if peak is None and dtype == "fp32":
        peak = gpu.matrix_peak("fp16")
    if peak is None:
        return None
    same = gpu.key == reference.gpu
    clock = 1.0 if same else _clock(gpu) / _reference_clock(reference)
    bandwidth = gpu.bandwidth / reference.sheet_bandwidth
    matrix = sheet_matrix = peak / reference.sheet_matrix_flops
    fp32 = sheet_fp32 = gpu.fp32_flops / reference.sheet_fp32_flops
    measured = []
    if calibration is not None:
        if calibration.copy_bytes_per_s is not None:
            bandwidth = calibration.copy_bytes_per_s / reference.copy_bytes_per_s
            measured.append("copy")
        half = calibration.matmul_flops.get(dtype if dtype != "fp32" else "bf16")
        if half is not None:
            matrix = half / reference.matmul_flops
            measured.append("matmul")
        single = calibration.matmul_flops.get("fp32")
        if single is not None:
            fp32 = single / reference.fp32_flops
            measured.append("fp32 matmul")
    if same:
        # other sizes and days measure the same GPU a little differently: only a real difference counts
        bandwidth, matrix, fp32 = (_unless_close(ratio) for ratio in (bandwidth, matrix, fp32))
        clock = matrix
    share = reference.sms / gpu.sms
    legacy = _legacy(gpu.compute_capability) / _legacy(reference.compute_capability)
    return Machine(
        gpu=gpu,
        sms=gpu.sms,
        bandwidth=bandwidth * reference.copy_bytes_per_s / 1e6,
        clock=clock,
        tensor=matrix * share,
        legacy_tensor=matrix * share * legacy,
        general=clock / share,
        reference=same,
        matrix_speed=matrix / sheet_matrix,
        fp32_speed=fp32 / sheet_fp32,
        calibrated=tuple(measured),
    )


def _unless_close(ratio: float) -> float:
    return 1.0 if abs(ratio - 1) <= _SAME else ratio


def _clock(gpu: Gpu) -> float:
    return gpu.fp32_flops / (2 * _LANES.get(gpu.compute_capability, 128) * gpu.sms)


def _reference_clock(reference: Reference) -> float:
    return reference.sheet_fp32_flops / (2 * 128 * reference.sms)


def _legacy(compute_capability: str) -> float:
    return _LEGACY.get(compute_capability, 1.0)
