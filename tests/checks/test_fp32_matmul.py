"""Which kernels multiply float32 on CUDA cores was read off names and types; times are those of an H200."""

import math
from pathlib import Path

import pytest

from tracehunch.checks import fp32_matmul
from tracehunch.checks._products import Product
from tracehunch.checks._tf32_time import tf32_range_us
from tracehunch.hardware import find_gpu
from tracehunch.verdict import CannotTell, Finding

DATA = Path(__file__).parents[1] / "data" / "h200"


def findings(facts):
    return [one for one in fp32_matmul.check(facts) if isinstance(one, Finding)]


def products_us(document):
    """Sum the kernels launched in the window whose name says that they multiply float32 on CUDA cores."""
    events = document["traceEvents"]
    launched = {e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    kernels = [e for e in events if e.get("cat") == "kernel" and e["args"]["correlation"] in launched]
    return sum(e["dur"] for e in kernels if "gemm_f32f32" in e["name"] or "simt_sgemm" in e["name"])


def test_linear_layers_in_float32_are_found(facts_of, raw):
    (found,) = findings(facts_of("faults/fp32_gemm"))
    assert (found.scope, found.severity, found.confidence) == ("step", "warning", "high")
    assert (found.subject, found.per_call) == ("aten::linear", 4)
    spent = products_us(raw("faults/fp32_gemm")) / 3
    # 4 products of 4096 x 1024 x 1024: 17.4 us each at TF32's peak, of which 45 % are reached at least
    slowest = 4 * (2 * 4096 * 1024 * 1024 / 494.7e12 / 0.45 * 1e6 + 6.0)
    assert math.isclose(found.time_at_stake_us, spent - slowest, rel_tol=2e-3)
    assert 'torch.set_float32_matmul_precision("high")' in found.fix
    assert "717.8 us, where TF32 is expected to take" in found.summary


def test_without_shapes_half_of_the_time_is_promised(facts_of, raw):
    (found,) = findings(facts_of("faults/two_streams"))
    assert (found.scope, found.severity, found.per_call) == ("step", "warning", 6)
    assert math.isclose(found.time_at_stake_us, products_us(raw("faults/two_streams")) / 6, rel_tol=1e-9)
    assert "no shapes were recorded" in found.cause


MEASURED = [  # M, N, K and microseconds of one product as TF32 on an H200
    (4096, 1024, 1024, 32.2),
    (2048, 2048, 2048, 49.2),
    (8192, 4096, 1024, 182.4),
    (8192, 8192, 8192, 3195.0),
    (4096, 50257, 768, 2446.6),
    (128, 4096, 4096, 29.3),
]


@pytest.mark.parametrize(("rows", "columns", "inner", "measured"), MEASURED)
def test_the_expected_time_holds_what_was_measured(rows, columns, inner, measured):
    gpu = find_gpu("NVIDIA H200", sms=132)
    low, high = tf32_range_us(
        Product(1, rows, inner, columns, "float"), gpu.matrix_peak("tf32"), gpu.bandwidth
    )
    assert low <= measured <= high


@pytest.mark.parametrize(
    ("shape", "measured"), [((128, 1024, 64, 1024), 181.6), ((128, 1024, 1024, 64), 153.8)]
)
def test_products_that_wait_for_memory_are_not_promised_more(shape, measured):
    gpu = find_gpu("NVIDIA H200", sms=132)
    low, high = tf32_range_us(Product(*shape, "float"), gpu.matrix_peak("tf32"), gpu.bandwidth)
    assert low <= measured <= high


WARNED = {"faults/fp32_gemm", "faults/two_streams", "ops/naive_fp32"}


@pytest.mark.parametrize(
    "path", sorted(DATA.rglob("*.json.gz")), ids=lambda path: path.relative_to(DATA).as_posix()[:-8]
)
def test_no_other_trace_has_one(facts_of, path):
    """Above all not the math fallback, which casts up itself, nor the tiny products of rotary embeddings."""
    name = path.relative_to(DATA).as_posix().removesuffix(".json.gz")
    found = findings(facts_of(name))
    assert [one.severity for one in found] == (["warning"] if name in WARNED else [])


def test_float64_is_another_matter(raw, facts_from):
    """Constructed: the recorded products in float64."""
    document = raw("faults/fp32_gemm")
    for event in document["traceEvents"]:
        types = event.get("args", {}).get("Input type")
        if types:
            event["args"]["Input type"] = ["double" if kind == "float" else kind for kind in types]
    assert findings(facts_from(document)) == []


def test_where_there_is_no_tf32_it_is_a_note(raw, facts_from):
    """Constructed: the recorded products on a GPU before Ampere."""
    document = raw("faults/fp32_gemm")
    document["deviceProperties"][0] |= {"name": "Tesla V100-SXM2-16GB", "numSms": 80}
    document["deviceProperties"][0] |= {"computeMajor": 7, "totalGlobalMem": 16_900_000_000}
    (found,) = findings(facts_from(document))
    assert found.severity == "note"
    assert "has no TF32" in found.cause
    assert "torch.float16" in found.fix


def test_on_an_unknown_gpu_half_is_at_stake(raw, facts_from):
    """Constructed: the recorded products on a GPU that no table has."""
    document = raw("faults/fp32_gemm")
    document["deviceProperties"][0]["name"] = "NVIDIA X900"
    (found,) = findings(facts_from(document))
    assert (found.severity, found.confidence) == ("warning", "medium")
    assert math.isclose(found.time_at_stake_us, products_us(document) / 6, rel_tol=1e-9)


def test_convolutions_are_a_note(raw, facts_from):
    """Constructed: bfloat16 convolutions of a recorded trace, as if they were of float32."""
    document = raw("situations/unet_nchw")
    for event in document["traceEvents"]:
        types = event.get("args", {}).get("Input type")
        if types:
            event["args"]["Input type"] = ["float" if kind == "c10::BFloat16" else kind for kind in types]
    found = findings(facts_from(document))
    assert {one.severity for one in found} == {"note"}
    assert all("torch.backends.cudnn.allow_tf32" in one.fix for one in found)


def test_neither_types_nor_names_cannot_be_told(raw, facts_from):
    """Constructed: a recorded trace without types, its kernels' names cut before the type."""
    document = raw("situations/unet_nchw")
    for event in document["traceEvents"]:
        event.get("args", {}).pop("Input type", None)
        if event.get("cat") == "kernel" and "dgrad_engine" in event["name"]:
            event["name"] = "void dgrad_engine<some_type, 512, 6, 5, 3, 3, 3, false>(int)"
    untold = [one for one in fp32_matmul.check(facts_from(document)) if isinstance(one, CannotTell)]
    assert [(one.key, one.scope, one.record_with) for one in untold] == [
        ("fp32-matmul", "step", "record_shapes=True")
    ]
