"""The time of attention calls: what was measured lies in the ranges that ship, and nothing is made up."""

from __future__ import annotations

import time
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

import pytest

from tracehunch.hardware import all_gpus
from tracehunch.predict.roofline import AttentionDims, AttentionTime, Calibration, NoEstimate, attention_time
from tracehunch.predict.roofline.coefficients import coefficients, kernel_table

if TYPE_CHECKING:
    from types import ModuleType

GPUS = {gpu.key: gpu for gpu in all_gpus()}
H200, A100 = GPUS["h200-sxm"], GPUS["a100-80gb-sxm"]
SEED = AttentionDims(8, 16, 1024, 1024, 64)
BACKENDS = ("naive", "naive_inplace", "math", "flash", "efficient", "cudnn")


def told(backend: str, dims: AttentionDims = SEED, *, gpu=H200, causal: bool = True, **more) -> AttentionTime:
    found = attention_time(backend, dims, "bfloat16", causal, gpu, **more)
    assert isinstance(found, AttentionTime), found
    return found


@pytest.mark.parametrize(
    ("backend", "us"),
    [
        ("naive", 1064),
        ("naive_inplace", 938),
        ("math", 2617),
        ("efficient", 182),
        ("flash", 95),
        ("cudnn", 58),
    ],
)
def test_seed_shape_on_the_measured_gpu(backend: str, us: float) -> None:
    found = told(backend, clock="gpu")
    assert found.low_us < us < found.high_us
    assert found.mid_us == pytest.approx(us, rel=0.1)
    assert found.high_us / found.low_us < 2
    assert found.confidence == "high"


@pytest.mark.parametrize(
    ("backend", "us"),
    [("naive_inplace", 1955), ("math", 7239), ("efficient", 277.9), ("flash", 146.8), ("cudnn", 186.3)],
)
def test_published_times_of_an_a100_lie_inside(backend: str, us: float) -> None:
    found = told(backend, gpu=A100, clock="gpu")
    assert found.low_us < us < found.high_us
    assert found.mid_us == pytest.approx(us, rel=0.25)
    assert found.confidence == "low"
    assert any("nothing was measured on A100 80GB SXM" in why for why in found.why)
    own = told(backend, clock="gpu")
    assert found.high_us / found.low_us > 1.5 * own.high_us / own.low_us


def test_the_two_largest_of_the_live_checks() -> None:
    for dims in (AttentionDims(2, 32, 4096, 4096, 128), AttentionDims(4, 12, 2048, 2048, 64)):
        order = sorted(BACKENDS, key=lambda backend: told(backend, dims, clock="gpu").mid_us)
        assert order == ["cudnn", "flash", "efficient", "naive_inplace", "naive", "math"]


def test_small_calls_wait_for_the_host() -> None:
    tiny = AttentionDims(1, 4, 64, 64, 64)
    on_gpu, measured = told("flash", tiny, clock="gpu"), told("flash", tiny)
    assert on_gpu.mid_us < 10
    assert measured.mid_us > 30
    assert measured.confidence == "medium"
    assert any("the host takes" in why for why in measured.why)
    large = AttentionDims(16, 32, 4096, 4096, 128)
    assert told("flash", large).mid_us == pytest.approx(told("flash", large, clock="gpu").mid_us, rel=1e-3)


def test_a_recorded_backward_of_math_lies_inside() -> None:
    # 4 products, where, softmax, scalings and casts of a trace, without what sum() and its gradient cost
    found = told("math", AttentionDims(4, 16, 1024, 1024, 64), backward=True, clock="gpu")
    assert found.low_us < 1326 < found.high_us
    assert found.confidence == "low"


def test_a_mask_or_dropout_makes_the_guess_wider() -> None:
    dims = AttentionDims(4, 16, 1024, 1024, 64)
    masked, plain = (told("cudnn", dims, causal=False, clock="gpu", mask=mask) for mask in (True, False))
    assert masked.low_us < 76.5 < masked.high_us
    assert masked.high_us / masked.low_us > plain.high_us / plain.low_us
    dropped = told("cudnn", dims, clock="gpu", dropout=True)
    assert dropped.low_us < 75.3 < dropped.high_us
    assert "cuDNN with dropout took 2.2 times as long on an H200" in dropped.why


def test_measured_peaks_take_precedence_and_are_named() -> None:
    slow = told("naive", gpu=A100, clock="gpu", calibration=Calibration(1.0e12, {"bf16": 250e12}))
    assert slow.mid_us > 1.3 * told("naive", gpu=A100, clock="gpu").mid_us
    assert any("copy and matmul rate measured here" in why for why in slow.why)


@pytest.mark.parametrize(
    ("backend", "dtype", "gpu", "dim", "reason"),
    [
        ("flash", "bf16", None, 64, "the GPU is not known"),
        ("flash", "fp32", H200, 64, "flash takes no fp32"),
        ("cudnn", "bf16", GPUS["mi300x"], 64, "cuDNN does not run"),
        ("flash", "fp16", GPUS["t4"], 64, "needs compute capability 8.0"),
        ("naive", "bf16", GPUS["t4"], 64, "no matrix unit for bf16"),
        ("flash", "bf16", H200, 320, "no kernel for head dimension 320"),
        ("naive", "fp64", H200, 64, "nothing is known of attention in fp64"),
        ("flex", "bf16", H200, 64, "no model of backend 'flex'"),
    ],
)
def test_what_cannot_be_told(backend: str, dtype: str, gpu, dim: int, reason: str) -> None:
    found = attention_time(backend, AttentionDims(1, 4, 256, 256, dim), dtype, causal=False, gpu=gpu)
    assert isinstance(found, NoEstimate)
    assert reason in found.reason


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("key", GPUS)
def test_every_gpu_gets_a_range_or_a_reason(key: str, backend: str, backward: bool) -> None:
    for dims in (SEED, AttentionDims(1, 32, 1, 8192, 128, kv_heads=8), AttentionDims(2, 3, 77, 1000, 40)):
        found = attention_time(backend, dims, "fp16", causal=False, gpu=GPUS[key], backward=backward)
        if isinstance(found, AttentionTime):
            assert 0 < found.low_us < found.mid_us < found.high_us
            assert found.why


def test_longer_calls_take_longer() -> None:
    for backend in BACKENDS:
        lengths = [AttentionDims(2, 16, 1 << power, 1 << power, 64) for power in range(8, 15)]
        times = [told(backend, dims, clock="gpu").mid_us for dims in lengths]
        assert times == sorted(times)


def test_every_kernel_has_a_cost_and_a_source() -> None:
    model = coefficients()
    assert set(model.costs) == set(model.kernels)
    assert all(entry["source"] for entry in kernel_table().values())


def test_three_thousand_lines_are_quick() -> None:
    start = time.perf_counter()
    for index in range(3_000):
        dims = AttentionDims(1 + index % 8, 16, 128 + index % 2000, 128 + index % 2000, 64)
        told(BACKENDS[index % 6], dims)
        told(BACKENDS[index % 6], dims, backward=True)
    assert time.perf_counter() - start < 1.5


def test_benchmarks_lie_in_the_ranges_that_ship(attention_fit: ModuleType) -> None:
    errors, inside, widths = [], [], []
    calls = defaultdict(dict)
    for m in attention_fit.timing():
        case = m.case
        found = told_of(case)
        errors.append(abs(found.mid_us / m.us - 1))
        inside.append(found.low_us <= m.us <= found.high_us)
        widths.append(found.high_us / found.low_us)
        calls[m.call][case.backend] = (m.us, found.mid_us)
    assert len(errors) == 367
    assert median(errors) < 0.10
    assert sum(inside) / len(inside) > 0.88
    assert median(widths) < 1.9
    contested = [backends for backends in calls.values() if len(backends) >= 3]
    right = [
        b[min(b, key=lambda name: b[name][1])][0] <= 1.05 * min(us for us, _ in b.values()) for b in contested
    ]
    assert sum(right) / len(right) > 0.87


def told_of(case) -> AttentionTime:
    found = attention_time(case.backend, case.dims, case.dtype, case.causal, H200, backward=case.backward)
    assert isinstance(found, AttentionTime)
    return found
