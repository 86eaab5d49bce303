"""Roofs, what limits a call, and how a GPU compares with the one that was measured."""

from __future__ import annotations

import pytest

from tracehunch.hardware import Gpu, all_gpus
from tracehunch.predict.roofline import AttentionDims, Calibration, attention_work, ceilings, roofline
from tracehunch.predict.roofline.coefficients import coefficients
from tracehunch.predict.roofline.machine import machine

GPUS = {gpu.key: gpu for gpu in all_gpus()}
H200 = GPUS["h200-sxm"]


def test_roof_of_the_data_sheet_and_of_measurements() -> None:
    sheet = ceilings(H200, "bf16")
    assert sheet is not None
    assert (sheet.flops, sheet.bandwidth, sheet.flops_source) == (989.4e12, 4.8e12, "data sheet")
    assert sheet.ridge == pytest.approx(206, abs=1)
    own = ceilings(H200, "bf16", Calibration(4.2e12, {"bf16": 7e14}))
    assert own is not None
    assert (own.flops, own.bandwidth) == (7e14, 4.2e12)
    assert (own.flops_source, own.bandwidth_source) == ("measured", "measured")


def test_float32_is_multiplied_without_tensor_cores() -> None:
    roof = ceilings(H200, "fp32")
    assert roof is not None
    assert roof.flops == pytest.approx(66.9e12)


def test_no_roof_without_a_unit() -> None:
    assert ceilings(GPUS["t4"], "bf16") is None
    assert machine(GPUS["t4"], "bf16") is None


def test_prefill_is_bound_by_compute_and_decode_by_memory() -> None:
    roof = ceilings(H200, "bf16")
    assert roof is not None
    prefill = attention_work(AttentionDims(2, 32, 4096, 4096, 128), "bf16", causal=True)
    decode = attention_work(AttentionDims(16, 32, 1, 4096, 128), "bf16", causal=False)
    assert roofline(prefill.flops, prefill.least_bytes, roof).bound == "compute"
    found = roofline(decode.flops, decode.least_bytes, roof)
    assert found.bound == "memory"
    assert found.us == found.memory_us == pytest.approx(1e6 * decode.least_bytes / 4.8e12)
    assert roofline(1000, 1000, roof, floor_us=3.0).bound == "overhead"


def test_the_reference_is_one() -> None:
    seen = machine(H200, "bf16")
    assert seen is not None
    assert (seen.clock, seen.tensor, seen.legacy_tensor, seen.general) == (1, 1, 1, 1)
    assert seen.reference


@pytest.mark.parametrize(
    ("key", "ghz"),
    [("a100-80gb-sxm", 1.41), ("h100-sxm", 1.98), ("rtx-4090", 2.52), ("v100-sxm2-16gb", 1.53)],
)
def test_clocks_follow_from_float32_peaks(key: str, ghz: float) -> None:
    seen = machine(GPUS[key], "fp16")
    assert seen is not None
    assert seen.clock * 1.98 == pytest.approx(ghz, rel=0.02)


def test_measured_peaks_count() -> None:
    a100 = machine(GPUS["a100-80gb-sxm"], "bf16", Calibration(1.75e12, {"bf16": 270e12}))
    assert a100 is not None
    assert a100.bandwidth == pytest.approx(1.75e6)
    assert a100.matrix_speed == pytest.approx(270e12 / 312e12 * 989.4e12 / 727.6e12, rel=0.01)
    assert a100.calibrated == ("copy", "matmul")


def test_the_reference_measured_a_little_differently_is_still_the_reference() -> None:
    close = machine(H200, "bf16", Calibration(4.4e12, {"bf16": 790e12}))
    slow = machine(H200, "bf16", Calibration(4.4e12, {"bf16": 400e12}))
    assert close is not None
    assert slow is not None
    assert close.clock == 1
    assert slow.clock == pytest.approx(400e12 / coefficients().reference.matmul_flops)


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS.keys())
def test_every_gpu_has_a_speed(gpu: Gpu) -> None:
    seen = machine(gpu, "fp16")
    assert seen is not None
    assert 0.05 < seen.general < 5
    assert 0.1 < seen.clock < 2
