"""Calls of a compiled program as plain data: generated kernels, and SDPA's fused operations."""

from types import MappingProxyType

import pytest

from tracehunch.predict.environment import environment
from tracehunch.predict.ops.tensor import tensor
from tracehunch.predict.program.calls import SDPA, OpCall, Program
from tracehunch.predict.program.compiled import Break, CompiledProgram, GeneratedKernel, Region, Run
from tracehunch.predict.program.compiled_calls import as_sdpa, generated_activities
from tracehunch.predict.program.compiled_guess import claims, guess_compiled

H200 = environment("h200", "2.11")
HEADS = tensor((2, 8, 1024, 64), "bf16")
GELU = GeneratedKernel("triton_poi_fused_gelu_mul_0", "poi", ("gelu", "mul"), 3 * 2**25, 2**24)


def program(**changes):
    calls = (
        OpCall("aten::mm", tensors=(tensor((1024, 512), "bf16"), tensor((512, 1024), "bf16"))),
        OpCall(GELU.name),
    )
    given = {
        "program": Program("p", calls, torch="2.11.0"),
        "regions": (Region("0/0", 0, "forward"),),
        "runs": (Run(0, 0, 2),),
        "launches": {1: GELU},
        "inductor": "2.11.0",
    }
    return CompiledProgram(**(given | changes))


def by_hand(softmax="_softmax", **changes):
    """Attention by hand as Inductor leaves it: products with the place for their result, a kernel between."""
    q, k = tensor((64, 1024, 64), "bf16"), tensor((64, 64, 1024), "bf16")
    scores = tensor((64, 1024, 1024), "bf16")
    kernel = GeneratedKernel(
        "triton_per_fused_0", "per", ("mul", softmax, "prepare_softmax_online"), 2**28, 2**26, 1024
    )
    on_gpu = {"devices": ("cuda",) * 3, "output_devices": ("cuda",), "line": "model.py:9"}
    calls = (
        OpCall("aten::bmm", tensors=(q, k, scores), outputs=(scores,), **on_gpu),
        OpCall(kernel.name, tensors=(scores, tensor((4, 16, 1024, 1024), "bf16")), devices=("cuda",) * 2),
        OpCall("aten::bmm", tensors=(scores, q, q), outputs=(q,), **on_gpu),
    )
    given = {"program": Program("p", calls, torch="2.11.0"), "runs": (Run(0, 0, 3),), "launches": {1: kernel}}
    return program(**(given | changes))


def test_attention_that_stays_by_hand_when_compiled_is_a_finding():
    found = guess_compiled(by_hand(), H200).findings
    (one,) = [one for one in found if one.id == "unfused-attention"]
    assert (one.severity, one.line, one.count) == ("warning", "model.py:9", 1)
    assert "bmm, mul, _softmax, bmm, which Inductor did not turn into SDPA" in one.cause
    other = guess_compiled(by_hand("_log_softmax"), H200).findings
    assert "unfused-attention" not in {one.id for one in other}


def test_a_compiled_program_that_waits_for_the_host_is_not_told_to_compile():
    """Whether or not something runs outside regions."""
    small = tensor((64,), "bf16")
    calls = tuple(OpCall("aten::neg", tensors=(small,), outputs=(small,)) for _ in range(40))
    given = {"program": Program("p", calls, torch="2.11.0"), "launches": {}}
    for runs in ((Run(0, 0, 40),), (Run(0, 0, 20),)):
        guess = guess_compiled(program(**given, runs=runs), H200)
        assert guess.totals.bound == "launch"
        (one,) = [one for one in guess.findings if one.id == "overhead-bound"]
        assert "fuses" not in one.fix
        assert "CUDA graphs" in one.fix
        assert "optimizer" not in one.fix


def test_time_of_a_generated_kernel_grows_with_its_bytes():
    small = generated_activities(GELU, H200)
    large = generated_activities(GeneratedKernel(GELU.name, "poi", GELU.ops, 10 * GELU.bytes), H200)
    assert small.kernel_count == 1
    assert small.bytes == GELU.bytes
    assert 5 < large.time.mid_us / small.time.mid_us < 15
    assert small.time.mid_us > GELU.bytes / H200.gpu.bandwidth * 1e6 * 0.5


@pytest.mark.parametrize(
    ("kind", "mib", "measured_us"),
    [
        ("poi", 48, 12.1),
        ("poi", 196, 48.2),
        ("per", 12, 4.5),
        ("per", 32, 11.6),
        ("red", 16, 5.9),
        ("for", 112, 37.8),
    ],
)
def test_time_is_near_what_an_h200_took(kind, mib, measured_us):
    """Kernels of nanoGPT's training, a ResNet and a Llama-shaped model, compiled, with torch 2.11."""
    one = generated_activities(GeneratedKernel(f"triton_{kind}_fused_0", kind, (), mib << 20), H200)
    assert one.time.mid_us == pytest.approx(measured_us, rel=0.35)
    assert one.time.low_us < measured_us < one.time.high_us


def test_kernel_of_unknown_bytes_has_no_time():
    assert generated_activities(GeneratedKernel("triton_for_fused_0", "for"), H200).time is None


def test_fused_attention_becomes_sdpa_pinned_to_its_backend():
    call = OpCall(
        "aten::_scaled_dot_product_flash_attention", tensors=(HEADS,) * 3, options={"is_causal": True}
    )
    made = as_sdpa(call, trains=True)
    assert (made.op, made.pinned, made.phase) == (SDPA, ("flash",), "forward")
    assert made.sdpa.is_causal
    assert made.sdpa.requires_grad
    lse = tensor((2, 8, 1024), "fp32")
    backward = OpCall("aten::_scaled_dot_product_flash_attention_backward", tensors=(*[HEADS] * 5, lse))
    assert as_sdpa(backward, trains=True).phase == "backward"
    assert as_sdpa(OpCall("aten::mm"), trains=False) is None


def test_a_triangle_that_ends_bottom_right_is_no_sdpa_call():
    keys = tensor((2, 8, 2048, 64), "bf16")
    call = OpCall(
        "aten::_scaled_dot_product_flash_attention", tensors=(HEADS, keys, keys), options={"is_causal": True}
    )
    made = as_sdpa(call, trains=False)
    assert (made.op, made.sdpa.lower_right) == (call.op, True)


def test_mask_of_the_efficient_backward_is_the_fifth_tensor():
    mask = tensor((2, 8, 1024, 1024), "bf16")
    rest = (HEADS, tensor((2, 8, 1024), "fp32"), tensor((), "int64"), tensor((), "int64"))
    call = OpCall(
        "aten::_scaled_dot_product_efficient_attention_backward", tensors=(*[HEADS] * 4, mask, *rest)
    )
    assert as_sdpa(call, trains=True).sdpa.mask.shape == mask.shape


def test_region_counts_its_kernels_and_library_calls():
    guess = guess_compiled(program(frames=3), H200)
    assert guess.totals.amounts.kernels == 2
    (region,) = guess.compiled.regions
    assert region.library == (("aten::mm", 1),)
    assert [(row.kernel.name, row.launches) for row in region.kernels] == [(GELU.name, 1)]
    assert guess.compiled.merged == (("gelu", "mul"),)
    assert {one.key: one.expected for one in claims(guess.compiled, "step")} == {
        "compiled": 3,  # a trace marks frames, of which two have no graph here
        "compiled.recompiles": 0,
        "compiled.graph_breaks": 0,
    }


def test_no_frames_that_were_seen_are_no_claim():
    guess = guess_compiled(program(), H200)
    assert "compiled" not in {one.key for one in claims(guess.compiled, "step")}


def test_graph_that_could_not_be_compiled_is_a_cannot_tell():
    guess = guess_compiled(
        program(
            regions=(Region("0/0", 0, "forward", unknown="no"),),
            runs=(Run(0, 2, 2),),
            launches=MappingProxyType({}),
        ),
        H200,
    )
    assert guess.totals.at_least
    assert any("no" in one.reason for one in guess.cannot_tell)


def test_break_leaves_the_claim_out():
    keys = [one.key for one in claims(guess_compiled(program(breaks=(Break("print"),)), H200).compiled, "s")]
    assert "compiled.graph_breaks" not in keys


def test_another_version_than_the_asked_one_is_told():
    told = guess_compiled(program(inductor="2.13.0+cpu"), H200).cannot_tell
    assert any("Inductor 2.13" in one.reason and "torch 2.11" in one.reason for one in told)
    assert not any("Inductor" in one.reason for one in guess_compiled(program(), H200).cannot_tell)
