"""Which kernels are CUDA-core kernels was read off their names; the inputs' types off the recorded types."""

import math

import pytest

from tracehunch.checks import tensor_cores_idle
from tracehunch.verdict import CannotTell


def results(facts):
    return list(tensor_cores_idle.check(facts))


@pytest.mark.parametrize("name", ["seeds/sdpa_math", "seeds/shapes_sdpa_math"])
def test_the_math_fallback_is_blamed_for_its_upcast(facts_of, raw, name):
    (found,) = results(facts_of(name))
    events = raw(name)["traceEvents"]
    cited = [events[position] for position in found.evidence]
    assert len(cited) == 6
    assert all("ffma" in event["name"] for event in cited)
    assert found.severity == "warning"
    assert "the fallback is to blame" in found.cause
    assert "tensor cores stayed idle" in found.summary
    spent = sum(event["dur"] for event in cited) / 3
    # at a quarter of the H200's 989.4 to 66.9 TFLOP/s
    assert math.isclose(found.time_at_stake_us, spent * (1 - 4 * 66.9 / 989.4), rel_tol=1e-6)


def test_the_backward_of_the_fallback_counts_too(facts_of):
    (found,) = results(facts_of("ops/fwdbwd_math"))
    assert len(found.evidence) == 18  # 2 products forward, 4 backward, 3 calls
    assert "the fallback is to blame" in found.cause


def test_convolutions_on_cuda_cores_are_found_by_their_kernels(facts_of):
    (found,) = results(facts_of("situations/unet_nchw"))
    assert "channels_last" in found.fix


@pytest.mark.parametrize(
    "name",
    [
        "faults/fp32_gemm",
        "faults/two_streams",
        "ops/naive_fp32",
        "models/llama_sdpa_train",
        "seeds/naive",
        "ops/decode_auto",
    ],
)
def test_products_of_float32_inputs_are_another_matter(facts_of, name):
    assert results(facts_of(name)) == []


def test_a_matrix_times_a_vector_is_no_finding(raw, facts_from):
    """Constructed: the fallback's products under the names of matrix-vector kernels."""
    document = raw("seeds/shapes_sdpa_math")
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel" and "ffma" in event["name"]:
            event["name"] = "void gemvNSP_kernel<float, float, float, float, 1, 32, 4, 1024>(int)"
    assert results(facts_from(document)) == []


def test_depthwise_convolutions_cannot_use_tensor_cores(raw, facts_from):
    """Constructed: the convolutions under the name of PyTorch's depthwise kernel."""
    document = raw("situations/unet_nchw")
    depthwise = "void at::native::conv_depthwise2d_forward_kernel<3, c10::BFloat16, int>(int)"
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel" and ("convolve" in event["name"] or "dgrad_engine" in event["name"]):
            event["name"] = depthwise
    assert results(facts_from(document)) == []


def test_neither_types_nor_names_cannot_be_told(raw, facts_from):
    """Constructed: a recorded trace without types, its kernels' names cut before the type."""
    document = raw("situations/unet_nchw")
    for event in document["traceEvents"]:
        event.get("args", {}).pop("Input type", None)
        if event.get("cat") == "kernel" and "dgrad_engine" in event["name"]:
            event["name"] = "void dgrad_engine<some_type, 512, 6, 5, 3, 3, 3, false>(int)"
    found = [result for result in results(facts_from(document)) if isinstance(result, CannotTell)]
    assert [(one.key, one.scope, one.record_with) for one in found] == [
        ("tensor-cores-idle", "step", "record_shapes=True")
    ]


def test_on_amd_the_units_have_amds_names(raw, facts_from):
    """Constructed: the fallback's products under the name of a Tensile kernel without MFMA."""
    document = raw("seeds/shapes_sdpa_math")
    document["deviceProperties"][0]["name"] = "AMD Instinct MI300X"
    for event in document["traceEvents"]:
        event["name"] = event["name"].replace("cudaLaunch", "hipLaunch").replace("cuda", "hip")
        if event.get("cat") == "kernel" and "ffma" in event["name"]:
            event["name"] = "Cijk_Ailk_Bljk_SB_MT64x64x8_SN_1LDSB0_APM1_AF0EM1_AF1EM1_AMAS0_ASE_ASGT"
    (found,) = results(facts_from(document))
    assert "vector units" in found.summary
    assert "CUDA" not in found.summary + found.cause
    assert "tensor cores" not in found.summary + found.cause
