"""The time of attention calls: what was measured lies in the ranges that ship, and nothing is made up."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

import pytest

from tracehunch.hardware import all_gpus
from tracehunch.predict.environment import environment
from tracehunch.predict.forecast import forecast
from tracehunch.predict.roofline import (
    AttentionDims,
    AttentionTime,
    Calibration,
    NoEstimate,
    attention_time,
    timings,
)
from tracehunch.predict.roofline.coefficients import coefficients, kernel_table
from tracehunch.predict.sdpa import sdpa_call

if TYPE_CHECKING:
    from types import ModuleType

GPUS = {gpu.key: gpu for gpu in all_gpus()}
H200, A100 = GPUS["h200-sxm"], GPUS["a100-80gb-sxm"]
SEED = AttentionDims(8, 16, 1024, 1024, 64)
BACKENDS = ("naive", "naive_inplace", "math", "flash", "efficient", "cudnn")


def told(
    backend: str, dims: AttentionDims = SEED, *, gpu=H200, causal: bool = True, backward: bool = False,
    dtype: str = "bfloat16", clock="gpu", calibration=None, **more,
) -> AttentionTime:  # fmt: skip
    call = sdpa_call(
        dims.batch, dims.heads, dims.queries, dims.head_dim, kv_heads=dims.kv_heads, keys=dims.keys,
        value_dim=dims.value_dim, dtype=dtype, is_causal=causal, enable_gqa=dims.groups > 1, **more,
    )  # fmt: skip
    found = forecast(backend, call, environment(gpu, "2.11"), clock=clock, calibration=calibration)
    answer = found.backward if backward else found.time
    assert isinstance(answer, AttentionTime), answer
    return answer


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
    found = told(backend)
    assert found.low_us < us < found.high_us
    assert found.mid_us == pytest.approx(us, rel=0.1)
    assert found.high_us / found.low_us < 2
    assert found.confidence == "high"


@pytest.mark.parametrize(
    ("backend", "us"),
    [("naive_inplace", 1955), ("math", 7239), ("efficient", 277.9), ("flash", 146.8), ("cudnn", 186.3)],
)
def test_published_times_of_an_a100_lie_inside(backend: str, us: float) -> None:
    found = told(backend, gpu=A100)
    assert found.low_us < us < found.high_us
    assert found.mid_us == pytest.approx(us, rel=0.3)
    assert found.confidence == "low"
    assert any("nothing was measured on A100 80GB SXM" in why for why in found.why)
    own = told(backend)
    assert found.high_us / found.low_us > 1.5 * own.high_us / own.low_us


def test_the_two_largest_of_the_live_checks() -> None:
    for dims in (AttentionDims(2, 32, 4096, 4096, 128), AttentionDims(4, 12, 2048, 2048, 64)):
        order = sorted(BACKENDS, key=lambda backend: told(backend, dims).mid_us)
        assert order == ["cudnn", "flash", "efficient", "naive_inplace", "naive", "math"]


def test_small_calls_wait_for_the_host() -> None:
    tiny = AttentionDims(1, 4, 64, 64, 64)
    on_gpu, measured = told("flash", tiny), told("flash", tiny, clock="host")
    assert on_gpu.mid_us < 10
    assert measured.mid_us > 30
    assert measured.confidence == "medium"
    assert any("the host takes" in why for why in measured.why)
    large = AttentionDims(16, 32, 4096, 4096, 128)
    assert told("flash", large, clock="host").mid_us == pytest.approx(told("flash", large).mid_us, rel=2e-3)


def test_a_recorded_backward_of_math_lies_inside() -> None:
    # 4 products, where, softmax, scalings and casts of a trace, without what sum() and its gradient cost
    found = told("math", AttentionDims(4, 16, 1024, 1024, 64), backward=True)
    assert found.low_us < 1326 < found.high_us
    assert found.confidence == "high"


def test_copies_around_a_kernel_are_part_of_the_time() -> None:
    # measured: 323 us where flash takes 162 us by itself
    short, even = (AttentionDims(8, 16, 1024, 1024, dim) for dim in (100, 104))
    padded, plain = told("flash", short), told("flash", even)
    assert padded.low_us < 323 < padded.high_us
    assert padded.mid_us > 1.5 * plain.mid_us
    assert any("6 steps around it" in why for why in padded.why)
    masked = told("cudnn", causal=False, mask=(1024, 1024), mask_dtype="bool")
    assert any("3 steps around it" in why for why in masked.why)


def test_a_mask_or_dropout_takes_longer() -> None:
    dims = AttentionDims(4, 16, 1024, 1024, 64)
    plain = told("cudnn", dims, causal=False)
    masked = told("cudnn", dims, causal=False, mask=(1024, 1024), mask_dtype="bfloat16")
    assert masked.mid_us > 1.2 * plain.mid_us
    assert masked.low_us < 76.5 < masked.high_us
    dropped = told("cudnn", dims, dropout=0.1)
    assert dropped.low_us < 75.3 < dropped.high_us


def test_measured_peaks_take_precedence_and_are_named() -> None:
    slow = told("naive", gpu=A100, calibration=Calibration(1.0e12, {"bf16": 100e12}))
    assert slow.mid_us > 1.3 * told("naive", gpu=A100).mid_us
    assert any("copy and matmul rate measured here" in why for why in slow.why)
    fast = told("math", gpu=A100, calibration=Calibration(None, {"fp32": 30e12}))
    assert fast.mid_us < 0.95 * told("math", gpu=A100).mid_us


@pytest.mark.parametrize(
    ("backend", "dtype", "gpu", "dim", "reason"),
    [
        ("flash", "bf16", None, 64, "the GPU is not known"),
        ("flash", "fp32", H200, 64, "flash takes no fp32"),
        ("cudnn", "bf16", GPUS["mi300x"], 64, "cuDNN does not run"),
        ("flash", "fp16", GPUS["t4"], 64, "needs compute capability 8.0"),
        ("efficient", "bf16", GPUS["t4"], 64, "no matrix unit for bf16"),
        ("flash", "bf16", H200, 320, "no kernel for head dimension 320"),
        ("efficient", "fp64", H200, 64, "nothing is known of attention in fp64"),
        ("flex", "bf16", H200, 64, "no model of backend 'flex'"),
        ("naive", "bf16", H200, 64, "composed of other operations"),
    ],
)
def test_what_cannot_be_told(backend: str, dtype: str, gpu, dim: int, reason: str) -> None:
    found = attention_time(backend, AttentionDims(1, 4, 256, 256, dim), dtype, causal=False, gpu=gpu)
    assert isinstance(found, NoEstimate)
    assert reason in found.reason


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("backend", ["flash", "efficient", "cudnn"])
@pytest.mark.parametrize("key", GPUS)
def test_every_gpu_gets_a_range_or_a_reason(key: str, backend: str, backward: bool) -> None:
    for dims in (SEED, AttentionDims(1, 32, 1, 8192, 128, kv_heads=8), AttentionDims(2, 3, 77, 1000, 40)):
        found = attention_time(backend, dims, "fp16", causal=False, gpu=GPUS[key], backward=backward)
        if isinstance(found, AttentionTime):
            assert 0 < found.low_us < found.mid_us < found.high_us
            assert found.why


@pytest.mark.parametrize("variant", ["naive", "naive_inplace", "math"])
@pytest.mark.parametrize("key", GPUS)
def test_every_gpu_gets_times_of_composed_variants(key: str, variant: str) -> None:
    env = environment(GPUS[key], "2.11")
    found = forecast(variant, sdpa_call(2, 8, 512, 64, dtype="float16", is_causal=True), env, clock="gpu")
    for answer in (found.time, found.backward):
        assert isinstance(answer, AttentionTime)
        assert 0 < answer.low_us < answer.mid_us < answer.high_us
        assert answer.confidence == ("high" if key == "h200-sxm" else answer.confidence)


def test_longer_calls_take_longer() -> None:
    for backend in BACKENDS:
        lengths = [AttentionDims(2, 16, 1 << power, 1 << power, 64) for power in range(8, 15)]
        times = [told(backend, dims).mid_us for dims in lengths]
        assert times == sorted(times)


def test_every_kernel_has_a_cost_and_a_source() -> None:
    model = coefficients()
    assert set(model.costs) == set(model.kernels)
    assert all(entry["source"] for entry in kernel_table().values())


def test_benchmarks_lie_in_the_ranges_that_ship(attention_truth: ModuleType) -> None:
    errors, inside, widths = [], [], []
    calls = defaultdict(dict)
    for m in attention_truth.timing():
        found = timings(m.launched(), H200).host
        errors.append(abs(found.mid_us / m.us - 1))
        inside.append(found.low_us <= m.us <= found.high_us)
        widths.append(found.high_us / found.low_us)
        calls[m.asked][m.variant] = (m.us, found.mid_us)
    assert len(errors) == 367
    assert median(errors) < 0.07
    assert sum(inside) / len(inside) > 0.88
    assert median(widths) < 1.9
    contested = [backends for backends in calls.values() if len(backends) >= 3]
    right = [
        b[min(b, key=lambda name: b[name][1])][0] <= 1.05 * min(us for us, _ in b.values()) for b in contested
    ]
    assert sum(right) / len(right) >= 0.9
