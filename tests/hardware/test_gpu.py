"""Known GPUs: found by what a trace's header says, and every number with its source."""

import tomllib
from importlib.resources import files

import pytest

from tracehunch.hardware import all_gpus, find_gpu, limits_of

GB = 10**9


@pytest.mark.parametrize(
    ("name", "sms", "memory_bytes", "key"),
    [
        # as real headers have them
        ("NVIDIA H200", 132, 150_109_880_320, "h200-sxm"),
        ("NVIDIA H100 80GB HBM3", 132, 85_018_279_936, "h100-sxm"),
        ("NVIDIA A100-PG509-200", 108, 42_505_273_344, "a100-40gb"),
        ("Tesla V100-SXM2-16GB", 80, 16_945_512_448, "v100-sxm2-16gb"),
        ("Tesla V100-SXM2-32GB", 80, 34_079_637_504, "v100-sxm2-32gb"),
        ("AMD Instinct MI300X", 304, 206_141_652_992, "mi300x"),
        ("AMD Instinct MI300X VF", 304, 205_571_227_648, "mi300x"),
        # as others are known to be named
        ("NVIDIA A100-SXM4-40GB", 108, 42_300_000_000, "a100-40gb"),
        ("NVIDIA A100-SXM4-80GB", 108, 85_000_000_000, "a100-80gb-sxm"),
        ("NVIDIA A100 80GB PCIe", 108, 85_000_000_000, "a100-80gb-pcie"),
        ("NVIDIA H100 PCIe", 114, 85_000_000_000, "h100-pcie"),
        ("NVIDIA H100 NVL", 132, 100_000_000_000, "h100-nvl"),
        ("NVIDIA B200", 148, 191_000_000_000, "b200"),
        ("NVIDIA GB200", 152, None, "gb200"),
        ("NVIDIA L4", 58, 23_600_000_000, "l4"),
        ("NVIDIA L40S", 142, 47_600_000_000, "l40s"),
        ("NVIDIA A10G", 80, 23_700_000_000, "a10g"),
        ("Tesla T4", 40, 15_800_000_000, "t4"),
        ("NVIDIA GeForce RTX 3090", 82, 25_300_000_000, "rtx-3090"),
        ("NVIDIA GeForce RTX 4090", 128, 25_300_000_000, "rtx-4090"),
        ("NVIDIA GeForce RTX 5090", 170, 33_600_000_000, "rtx-5090"),
        ("AMD Instinct MI250X", 110, 68_700_000_000, "mi250x"),
        ("AMD Instinct MI325X", 304, 274_000_000_000, "mi325x"),
        ("AMD Instinct MI355X", 256, 309_000_000_000, "mi355x"),
        ("NVIDIA A10", 72, 23_700_000_000, "a10"),
        ("AMD Instinct MI250", 104, 68_700_000_000, "mi250"),
        ("AMD Instinct MI250X / MI250", 110, 68_700_000_000, "mi250x"),
        ("AMD Instinct MI250X / MI250", 104, 68_700_000_000, "mi250"),
        ("AMD Instinct MI210", 104, 68_700_000_000, "mi250"),  # one such die
        ("AMD Radeon Graphics", 104, 68_702_699_520, "mi250"),  # a shared name, told by SMs and memory
        # with less known
        ("NVIDIA H200", None, None, "h200-sxm"),
        ("nvidia h200", None, None, "h200-sxm"),
    ],
)
def test_a_known_gpu_is_found(name, sms, memory_bytes, key) -> None:
    gpu = find_gpu(name, sms=sms, memory_bytes=memory_bytes)
    assert gpu is not None
    assert gpu.key == key


@pytest.mark.parametrize(
    ("name", "sms", "memory_bytes"),
    [
        ("", None, None),
        ("NVIDIA", None, None),
        ("NVIDIA H2000", None, None),
        ("NVIDIA H200 NVL", 132, 150 * GB),  # slower than the SXM, and not in the table
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14, 5 * GB),
        ("NVIDIA H200", 66, 75 * GB),  # half of one
        ("AMD Instinct MI300X", 38, 24 * GB),  # a partition
        ("AMD Radeon Graphics", 104, None),  # a name that many share
        ("AMD Radeon Graphics", 60, 16 * GB),
        ("AMD Instinct MI250X / MI250", None, None),  # either
        ("NVIDIA A10-24Q", None, None),  # a part of an A10
        ("NVIDIA GeForce RTX 4090 D", 114, 25 * GB),
        ("Tesla V100-SXM2", 80, None),  # 16 or 32 GB
        ("NVIDIA Z999", 500, 500 * GB),
    ],
)
def test_an_unknown_or_ambiguous_gpu_is_none(name, sms, memory_bytes) -> None:
    assert find_gpu(name, sms=sms, memory_bytes=memory_bytes) is None


def test_every_number_has_a_source() -> None:
    for file in (files("tracehunch.hardware") / "gpus").iterdir():
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        for number in table["numbers"].values():
            assert number["value"] > 0
            assert number["source"]


@pytest.mark.parametrize("gpu", all_gpus(), ids=lambda gpu: gpu.key)
def test_numbers_are_plausible(gpu) -> None:
    assert gpu.sources
    assert gpu.vendor in {"nvidia", "amd"}
    assert 5e12 < gpu.fp32_flops < 2e14
    assert 2e11 < gpu.bandwidth < 1e13
    assert gpu.fp16_matrix_flops is not None
    assert gpu.fp16_matrix_flops > gpu.fp32_flops
    assert gpu.tf32_matrix_flops is None or gpu.tf32_matrix_flops <= gpu.fp16_matrix_flops
    assert gpu.fp8_matrix_flops is None or gpu.fp8_matrix_flops > gpu.fp16_matrix_flops
    if gpu.vendor == "nvidia":
        assert limits_of(gpu.compute_capability) is not None


def test_peaks_by_data_type() -> None:
    h200 = find_gpu("NVIDIA H200")
    assert h200 is not None
    assert h200.matrix_peak("bf16") == pytest.approx(989.4e12)
    assert h200.matrix_peak("tf32") == pytest.approx(494.7e12)
    assert h200.matrix_peak("fp32") is None
    assert h200.bandwidth == pytest.approx(4.8e12)
    t4 = find_gpu("Tesla T4")
    assert t4 is not None
    assert t4.matrix_peak("bf16") is None
    assert t4.matrix_peak("fp16") == pytest.approx(65e12)
