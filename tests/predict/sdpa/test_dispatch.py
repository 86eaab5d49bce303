from dataclasses import replace

import pytest

from tracehunch.predict.environment import Environment, environment
from tracehunch.predict.sdpa import SdpaCall, across_versions, predict_sdpa, sdpa_call, tensor

NO_BACKEND = (
    "No viable backend for scaled_dot_product_attention was found. "
    "This is likely due to turning off both the math kernel and the fused kernels."
)
CUDNN_OUTPUT_STRIDE = (
    "cuDNN Frontend error: The stride for the last dimension corresponding to the embedding size per head "
    "should be 1 for output_names::O"
)
EXPANDED = (
    "The expanded size of the tensor (8) must match the existing size (3) at non-singleton dimension 1.  "
    "Target sizes: [2, 8, 1024, 1024].  Tensor sizes: [3, 1024, 1024]"
)
MASK_TYPE = (
    "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
    "long int and  query.dtype: c10::BFloat16 instead."
)
H200_VERSIONS = {
    "2.9": "cudnn",
    "2.10": "flash",
    "2.11": "cudnn",
    "2.12": "cudnn",
    "2.13": "cudnn",
    "2.14": "cudnn",
}


def refusals(prediction, backend):
    return [rejection.check for rejection in prediction.answer(backend).rejections]


def test_all_grounds_are_named_in_order_and_the_first_is_where_pytorch_stops(call, on):
    prediction = predict_sdpa(call(dtype="float32", mask=(8, 1024, 1024), layout="strided_last"), on("h200"))
    assert refusals(prediction, "flash") == ["mask", "dtype", "last-stride"]
    assert refusals(prediction, "cudnn") == ["dtype", "mask-shape", "last-stride"]
    assert refusals(prediction, "efficient") == ["last-stride"]
    assert prediction.answer("flash").first.check == "mask"
    assert prediction.answer("math").accepted


def test_words_say_what_it_is_and_what_to_change(call, on):
    prediction = predict_sdpa(call(mask="bool"), on("a100-80-sxm"))
    assert str(prediction.answer("flash").first).startswith(
        "flash: attn_mask given; pass is_causal=True instead"
    )
    assert prediction.chosen == "efficient"


def test_other_versions_are_named_where_they_differ(call, on):
    env = on("a100-80-sxm")
    (rejection,) = (
        predict_sdpa(call(kv_heads=2, enable_gqa=True, mask="bool"), env).answer("efficient").rejections
    )
    assert "repeat_interleave(4, dim=1)" in rejection.todo
    assert rejection.changes.startswith("from torch 2.14 mem-efficient takes grouped queries")
    (rejection,) = predict_sdpa(call(dropout=0.1), on("h200")).answer("cudnn").rejections
    assert rejection.changes == "up to torch 2.11 this was no obstacle"
    (rejection,) = predict_sdpa(call(mask="bool"), env).answer("flash").rejections
    assert rejection.changes == ""


def test_changes_move_with_the_wheels_cudnn_unless_another_was_given(call):
    wide = call(head_dim=192, value_dim=128)
    (moving,) = predict_sdpa(wide, environment("b200", "2.10")).answer("cudnn").rejections
    assert moving.changes == "from torch 2.11 this is no obstacle"
    (fixed,) = predict_sdpa(wide, environment("b200", "2.10", 91001)).answer("cudnn").rejections
    assert fixed.changes == ""


def test_each_version_has_its_choice(call, on):
    assert dict(across_versions(call(), on("h200"))) == H200_VERSIONS


# --- priority ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("torch", "capability", "changes", "chosen"),
    [
        ("2.13", (9, 0), {}, "cudnn"),
        ("2.13", (10, 0), {}, "cudnn"),
        ("2.13", (10, 3), {}, "cudnn"),
        ("2.13", (10, 1), {}, "cudnn"),
        ("2.12", (10, 1), {}, "flash"),
        ("2.12", (10, 3), {}, "cudnn"),
        ("2.13", (11, 0), {}, "flash"),
        ("2.13", (8, 0), {}, "flash"),
        ("2.13", (8, 9), {}, "flash"),
        ("2.13", (12, 0), {}, "flash"),
        ("2.13", (12, 1), {}, "flash"),
        ("2.13", (9, 0), {"cudnn": 91500}, "flash"),
        ("2.13", (9, 0), {"cudnn": 91501}, "cudnn"),
        ("2.10", (9, 0), {"cudnn": 91900}, "cudnn"),
        ("2.9", (9, 0), {}, "cudnn"),
        ("2.9", (10, 3), {}, "flash"),
        ("2.13+cu128", (10, 1), {}, "flash"),
        ("2.13+cu128", (10, 3), {}, "cudnn"),
        ("2.13", (9, 0), {"env": {"TORCH_CUDNN_SDPA_DEPRIORITIZED": "1"}}, "flash"),
        ("2.13", (9, 0), {"env": {"TORCH_CUDNN_SDPA_DEPRIORITIZED": "0"}}, "cudnn"),
        ("2.13", (9, 0), {"env": {"TORCH_CUDNN_SDPA_PREFERRED": "0"}}, "cudnn"),
        ("2.9", (9, 0), {"env": {"TORCH_CUDNN_SDPA_PREFERRED": "0"}}, "flash"),
        ("2.9", (9, 0), {"env": {"TORCH_CUDNN_SDPA_DEPRIORITIZED": "1"}}, "cudnn"),
        ("2.13", (9, 0), {"cudnn": None}, None),
        ("2.13", (10, 1), {"cuda": None}, None),
        ("2.13", (9, 0), {"cuda": None}, "cudnn"),
        ("2.6", (9, 0), {}, "flash"),
        ("2.8", (9, 0), {}, "flash"),
        ("2.5.0", (9, 0), {}, None),
        ("2.5.1", (9, 0), {}, "flash"),
        ("2.5", (9, 0), {}, None),
        ("2.5", (8, 0), {}, "flash"),
        ("2.8", (12, 0), {}, None),
    ],
)
def test_what_a_plain_call_runs(torch, capability, changes, chosen):
    env = replace(environment(torch=torch, compute_capability=capability), **changes)
    prediction = predict_sdpa(sdpa_call(2, 8, 1024, 128), env)
    assert prediction.chosen == chosen
    assert bool(prediction.cannot_tell) == (chosen is None)


def test_an_order_that_is_not_known_matters_only_where_it_matters(call, on):
    unknown = on("h200", cudnn=None)
    assert predict_sdpa(call(), unknown).cannot_tell == "the order depends on the version of cuDNN"
    assert predict_sdpa(call(dtype="float32"), unknown).chosen == "efficient"


# --- pins and flags ---------------------------------------------------------------------------------------


def test_a_pin_only_switches_the_others_off(call, on):
    env = on("h200", pinned=("math", "flash"))
    assert predict_sdpa(call(), env).chosen == "flash"
    assert refusals(predict_sdpa(call(), env), "cudnn") == ["disabled"]
    assert predict_sdpa(call(), replace(env, set_priority=True)).chosen == "math"


def test_an_order_set_before_the_first_call_may_not_last(call, on):
    env = on("h200", pinned=("flash", "cudnn"), set_priority=True)
    assert predict_sdpa(call(), env).chosen == "flash"
    first = replace(env, first_call=True)
    assert predict_sdpa(call(), first).chosen == "cudnn"
    assert predict_sdpa(call(), first).why.startswith("the first SDPA call of the process replaces")
    newest = replace(first, torch=(2, 14))
    assert predict_sdpa(call(), newest).chosen is None
    assert "first SDPA call" in predict_sdpa(call(), newest).cannot_tell
    assert predict_sdpa(call(), replace(on("a100-80-sxm"), first_call=True, order=("math",))).chosen == "math"


def test_a_pin_that_nothing_meets_raises(call, on):
    pinned = predict_sdpa(call(mask="bool"), on("h200", pinned=("flash",)))
    assert (pinned.chosen, pinned.ran) == ("error", None)
    assert pinned.raises == "No available kernel. Aborting execution."


@pytest.mark.parametrize(
    ("enabled", "raises"),
    [
        ({"math": False}, "Invalid backend"),
        ({"math": False, "overrideable": False}, "No available kernel. Aborting execution."),
        (
            dict.fromkeys(("math", "flash", "efficient", "cudnn"), False),
            NO_BACKEND,
        ),
    ],
)
def test_without_math_a_refused_call_raises(call, on, enabled, raises):
    assert predict_sdpa(call(dtype="float64"), on("h200", enabled=enabled)).raises == raises


# --- checks by size ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "changes", "chosen"),
    [
        (("h200", "2.12"), {"batch": 70000, "heads": 1, "length": 8, "head_dim": 64}, "cudnn"),
        (("h200", "2.13"), {"batch": 70000, "heads": 1, "length": 8, "head_dim": 64}, "flash"),
        (("b200", "2.10"), {"head_dim": 192, "value_dim": 128}, "efficient"),
        (("b200", "2.11"), {"head_dim": 192, "value_dim": 128}, "cudnn"),
        (("b200", "2.14"), {"head_dim": 256}, "cudnn"),
        (("b200", "2.14"), {"head_dim": 192, "value_dim": 192, "requires_grad": True}, "flash"),
        (("b200", "2.14"), {"head_dim": 192, "value_dim": 128, "requires_grad": True}, "cudnn"),
        (("h200", "2.11"), {"kv_heads": 2, "enable_gqa": True, "dtype": "float32"}, "math"),
        (("h200", "2.14"), {"kv_heads": 2, "enable_gqa": True, "dtype": "float32"}, "efficient"),
        (("h200", "2.13"), {"length": 1, "keys": 512, "dropout": 0.125}, "flash"),
        (("h200", "2.13"), {"dropout": 0.125}, "cudnn"),
        (("a100-80-sxm", "2.13"), {"head_dim": 8, "dtype": "float32"}, "efficient"),
        (("a100-80-sxm", "2.13"), {"head_dim": 2, "dtype": "float32"}, "math"),
        (("t4", "2.13"), {"head_dim": 2, "dtype": "float32"}, "efficient"),
        (("rtx-4090", "2.13"), {"head_dim": 256, "requires_grad": True}, "flash"),
        (("rtx-4090", "2.13"), {"head_dim": 256, "requires_grad": True, "dropout": 0.1}, "efficient"),
        (("rtx-5090", "2.13"), {"head_dim": 200, "requires_grad": True}, "efficient"),
        (("a100-80-sxm", "2.13"), {"head_dim": 200, "requires_grad": True}, "flash"),
    ],
)
def test_limits(call, on, machine, changes, chosen):
    assert predict_sdpa(call(**changes), on(*machine)).chosen == chosen


def test_key_and_value_heads_may_differ_for_cudnn_alone(on):
    q, k, v = (tensor((2, heads, 64, 64), "bfloat16") for heads in (8, 4, 2))
    prediction = predict_sdpa(SdpaCall(q, k, v, enable_gqa=True), on("h200"))
    assert prediction.chosen == "cudnn"
    assert refusals(prediction, "flash") == refusals(prediction, "efficient") == ["heads"]


def test_cudnn_with_broken_dropout_takes_none(call):
    env = environment("h200", "2.11", 91300)
    assert refusals(predict_sdpa(call(dropout=0.5), env), "cudnn") == ["dropout-of-cudnn"]
    assert predict_sdpa(call(), env).answer("cudnn").accepted


def test_no_grad_lets_flash_take_large_heads(call, on):
    training = call(head_dim=224, requires_grad=True)
    assert predict_sdpa(training, on("rtx-4090")).chosen == "efficient"
    assert predict_sdpa(replace(training, grad_enabled=False), on("rtx-4090")).chosen == "flash"


def test_fp8_needs_flash_attention_3(on):
    given = SdpaCall(*(tensor((2, 8, 64, 64), "float8_e4m3fn"),) * 3)
    assert predict_sdpa(given, on("h200")).chosen == "math"
    assert predict_sdpa(given, on("h200", flash_version="FA3")).chosen == "flash"
    assert predict_sdpa(given, on("h200", "2.10", flash_version="FA3")).chosen == "math"


def test_strides_count_not_layouts(call, on):
    """A transposed tensor with one row is contiguous in its last dimension."""
    assert predict_sdpa(call(layout="strided_last"), on("h200")).chosen == "math"
    one_row = call(length=1, keys=1, layout="strided_last")
    assert predict_sdpa(one_row, on("h200")).chosen == "flash"
    assert predict_sdpa(call(layout="bshd"), on("h200")).chosen == "cudnn"
    assert predict_sdpa(call(layout="expand_b"), on("h200")).chosen == "cudnn"


def test_a_masks_last_stride_counts_on_a_gpu_alone(call, on):
    strided = replace(tensor((2, 1, 1024, 1024), "bool"), stride=(1024 * 1024, 1024 * 1024, 1, 1024))
    given = replace(call(), mask=strided)
    assert predict_sdpa(given, on("a100-80-sxm")).chosen == "math"
    assert predict_sdpa(given, environment(torch="2.13", device="cpu")).chosen == "flash"
    older = predict_sdpa(given, environment(torch="2.11", device="cpu"))
    assert (older.chosen, older.exact) == (None, False)


# --- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "raises"),
    [
        ({"mask": "float32"}, None),
        ({"mask": "float32", "keys": 1}, "invalid dtype for bias - should match query's dtype"),
        ({"mask": "bool", "is_causal": True}, None),
        (
            {"mask": "bool", "is_causal": True, "dtype": "float64"},
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True",
        ),
        ({"layout": "expand_b"}, None),
        ({"layout": "expand_b", "value_dim": 64, "batch": 1}, None),
        (
            {"layout": "expand_b", "value_dim": 64},
            CUDNN_OUTPUT_STRIDE,
        ),
        (
            {"kv_heads": 3},
            "The size of tensor a (8) must match the size of tensor b (3) at non-singleton dimension 1",
        ),
        (
            {"kv_heads": 3, "enable_gqa": True},
            "Number of heads in key and value must divide the number of heads in ",
        ),
        (
            {"mask": (3, 1024, 1024), "mask_dtype": "bfloat16"},
            EXPANDED,
        ),
        (
            {"mask": (1024, 1024), "mask_dtype": "int64"},
            MASK_TYPE,
        ),
        ({"mask": (1024,)}, "Dimension out of range (expected to be in range of [-1, 0], but got -2)"),
    ],
)
def test_errors_on_an_h200(call, on, changes, raises):
    prediction = predict_sdpa(call(**changes), on("h200"))
    assert prediction.raises == raises
    assert (prediction.ran is None) == (raises is not None)


def test_mem_efficient_needs_aligned_rows_and_pointers(on):
    env = on("a100-80-sxm", "2.11", pinned=("efficient", "math"))
    q = tensor((2, 8, 64, 64), "float16")
    one = tensor((2, 8, 1, 64), "float16", "strided_last")
    assert predict_sdpa(SdpaCall(one, q, q), env).raises == "query is not correctly aligned (strideM)"
    assert predict_sdpa(SdpaCall(q, one, q), env).raises == "key is not correctly aligned (strideM)"
    cut = replace(q, storage_offset=1)
    assert predict_sdpa(SdpaCall(q, cut, q), env).raises == "p.key_ptr is not correctly aligned"
    assert predict_sdpa(SdpaCall(q, replace(q, storage_offset=8), q), env).raises is None


def test_mem_efficient_cannot_broadcast_a_mask_over_keys(call, on):
    given = call(mask=(2, 1, 1024, 1), mask_dtype="bfloat16")
    assert predict_sdpa(given, on("a100-80-sxm")).raises == "(*bias): last dimension must be contiguous"


def test_an_empty_call_runs_nothing(call, on):
    prediction = predict_sdpa(call(keys=0), on("h200"))
    assert (prediction.chosen, prediction.ran, prediction.raises) == ("math", None, None)


def test_newer_flash_attentions_raise_where_they_do_not_fit(call, on):
    env = on("a100-80-sxm", flash_version="FA3")
    assert predict_sdpa(call(dropout=0.5), env).raises == "FA3 SDPA forward unsupported: dropout_p must be 0"
    assert predict_sdpa(call(), env).raises.endswith("FA3 requires compute capability 9.0")
    assert predict_sdpa(call(), on("h200", flash_version="FA4", pinned=("flash",))).raises is None


def test_gb10_had_no_mem_efficient_kernel(call):
    given = call(dtype="float32")
    for torch, chosen in (("2.11", "cutlassF: no kernel found to launch!"), ("2.13", None)):
        prediction = predict_sdpa(given, environment(torch=torch, compute_capability=(12, 1)))
        assert (prediction.chosen, prediction.raises) == ("efficient", chosen)


# --- what cannot be told ----------------------------------------------------------------------------------


def test_versions_that_are_not_known_cannot_be_told(call):
    for version in ((2, 4), (2, 15), (3, 0)):
        prediction = predict_sdpa(call(), Environment(torch=version, compute_capability=(9, 0)))
        assert (prediction.chosen, prediction.answers) == (None, ())
        assert "not known (those of 2.5 to 2.14 are)" in prediction.cannot_tell


def test_nested_tensors_cannot_be_told(call, on):
    prediction = predict_sdpa(replace(call(), nested=True), on("h200"))
    assert prediction.chosen is None
    assert "nested" in prediction.cannot_tell


def test_an_unknown_gpu_cannot_be_told_unless_it_does_not_matter(call):
    env = environment(torch="2.13", device="cuda")
    assert predict_sdpa(call(), env).cannot_tell == "flash: depends on the GPU's compute capability"
    assert predict_sdpa(call(dtype="float64"), env).chosen == "math"


@pytest.mark.parametrize("torch", ["2.5.1", "2.6", "2.7", "2.8"])
def test_older_versions_answer_as_far_as_their_rules_are_known(call, on, torch):
    env = on("h200", torch)
    assert predict_sdpa(call(), env).chosen == "flash"
    assert not predict_sdpa(call(), env).exact
    assert predict_sdpa(call(mask="bool"), env).chosen == "efficient"
    assert predict_sdpa(call(dtype="float64"), env).chosen == "math"
    pinned = replace(env, pinned=("cudnn",))
    assert predict_sdpa(call(), pinned).chosen is None
    assert "not known" in predict_sdpa(call(), pinned).cannot_tell
    assert predict_sdpa(call(dtype="float32"), pinned).chosen == "error"
    steep = predict_sdpa(call(dropout=0.1), pinned).answer("cudnn")
    assert steep.accepted is None


# --- other devices ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ({}, "flash"),
        ({"head_dim": 512}, "flash"),
        ({"head_dim": 520}, "math"),
        ({"mask": "bool"}, "efficient"),
        ({"mask": "float32"}, "math"),
        ({"dtype": "float32"}, "efficient"),
        ({"dtype": "float64"}, "math"),
        ({"kv_heads": 2, "enable_gqa": True}, "flash"),
        ({"kv_heads": 2, "enable_gqa": True, "mask": "bool"}, "math"),
        ({"mask": "bool", "head_dim": 512}, None),
    ],
)
def test_rocm(call, on, changes, chosen):
    prediction = predict_sdpa(call(**changes), on("mi300x"))
    assert prediction.chosen == chosen
    assert not prediction.exact


def test_an_amd_gpu_without_known_kernels_cannot_be_told(call, on):
    env = on("mi300x", architecture="gfx1030")
    assert predict_sdpa(call(), env).cannot_tell == "flash: depends on whether gfx1030 has kernels"
    assert predict_sdpa(call(), replace(env, env={"TORCH_ROCM_FA_PREFER_CK": "1"})).chosen == "flash"
    small = on("mi300x", architecture="gfx1100", env={"TORCH_ROCM_FA_PREFER_CK": "1"})
    assert predict_sdpa(call(head_dim=300), small).chosen is None


def test_mps_and_xpu(call):
    assert predict_sdpa(call(), environment(torch="2.13", device="mps")).chosen == "math"
    xpu = environment(torch="2.13", device="xpu")
    assert predict_sdpa(call(), xpu).chosen is None
    assert predict_sdpa(call(dtype="float64"), xpu).chosen == "math"


def test_cpu_backends_that_are_not_there_say_so(call):
    prediction = predict_sdpa(call(), environment(torch="2.13", device="cpu"))
    assert prediction.chosen == "flash"
    assert refusals(prediction, "cudnn") == refusals(prediction, "efficient") == ["not-on-device"]
    mqa = call(kv_heads=1)
    assert predict_sdpa(mqa, environment(torch="2.13", device="cpu")).chosen == "math"
    assert predict_sdpa(mqa, environment(torch="2.14", device="cpu")).chosen == "flash"
