"""What the launch says about a kernel."""

import pytest

from tracehunch.kernels import classify, launch_hints, vendor_hint


def test_the_op_says_triton() -> None:
    assert launch_hints("anything", op_backend="triton") == ("triton",)


@pytest.mark.parametrize(
    ("name", "api", "op", "block", "expected"),
    [
        ("fused_bias_gelu", "cuLaunchKernelEx", None, [128, 1, 1], ("triton",)),
        ("fused_bias_gelu", "cuLaunchKernelEx", "MyFunction", [256, 1, 1], ("triton",)),
        ("fused_bias_gelu", "hipModuleLaunchKernel", None, [512, 1, 1], ("triton",)),
        ("fused_bias_gelu", "cuLaunchKernelEx", "aten::mm", [128, 1, 1], ()),
        ("fused_bias_gelu", "cudaLaunchKernel", None, [128, 1, 1], ()),
        ("fused_bias_gelu", "cuLaunchKernel", None, [128, 1, 1], ()),
        ("fused_bias_gelu", "cuLaunchKernelEx", None, [16, 16, 1], ()),
        ("fused_bias_gelu", "cuLaunchKernelEx", None, [96, 1, 1], ()),
        ("fused_bias_gelu", "cuLaunchKernelEx", None, [2048, 1, 1], ()),
        ("fused_bias_gelu", "cuLaunchKernelEx", None, None, ()),
        ("fused_bias_gelu", "cuLaunchKernelEx", None, [], ()),
        ("fused_bias_gelu", None, None, [128, 1, 1], ()),
        ("void kernel<float>(float*)", "cuLaunchKernelEx", None, [128, 1, 1], ()),
    ],
)
def test_the_way_of_the_launch(name, api, op, block, expected) -> None:
    assert launch_hints(name, launch_api=api, op_name=op, block=block) == expected


def test_a_hint_makes_a_plain_identifier_a_triton_kernel() -> None:
    identity = classify("fused_bias_gelu", hints=("triton",))
    assert (identity.library, identity.algorithm, identity.unit) == ("triton", "user-kernel", "unknown")
    assert not classify("fused_bias_gelu").classified


def test_a_hint_does_not_overrule_a_name_that_is_known() -> None:
    assert classify("triton_poi_fused_add_0", hints=("triton",)).library == "inductor"


def test_a_hint_does_not_make_a_template_a_triton_kernel() -> None:
    assert not classify("void kernel<float>(float*)", hints=("triton",)).classified


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"name": "NVIDIA H200", "warpSize": 32}, ("nvidia",)),
        ({"name": "Tesla V100-SXM2-16GB", "warpSize": 32}, ("nvidia",)),
        ({"name": "AMD Instinct MI300X VF", "warpSize": 64}, ("amd",)),
        ({"name": "AMD Radeon Graphics"}, ("amd",)),
        ({"name": "", "warpSize": 64}, ("amd",)),
        ({"name": "Intel Data Center GPU"}, ()),
        ({}, ()),
        (None, ()),
    ],
)
def test_vendor(properties, expected) -> None:
    assert vendor_hint(properties) == expected
