"""Names of generated kernels, taken apart."""

import random

import pytest

from tracehunch.facts.compiled.names import generated
from tracehunch.facts.compiled.pieces import _known, pieces

JOINED = {
    "_unsafe_view_gelu_mul": ("_unsafe_view", "gelu", "mul"),
    "_softmax_exp_masked_fill_mul_prepare_softmax_online_sub_view": (
        "_softmax", "exp", "masked_fill", "mul", "prepare_softmax_online", "sub", "view",
    ),
    "gelu_view_view_as_complex": ("gelu", "view", "view_as_complex"),
    "add_copy__mul_view": ("add", "copy_", "mul", "view"),
    "add_copy_": ("add", "copy_"),
    "add_native_layer_norm_view": ("add", "native_layer_norm", "view"),
    "_log_softmax_nll_loss_forward": ("_log_softmax", "nll_loss_forward"),
    "_softmax_backward_data_masked_fill": ("_softmax_backward_data", "masked_fill"),
    "gelu_gelu_backward_sum": ("gelu", "gelu_backward", "sum"),
    "mylib_foo_mul": ("mylib", "foo", "mul"),
    "": (),
}  # fmt: skip


@pytest.mark.parametrize("joined", JOINED)
def test_a_joined_name_is_its_ops(joined):
    assert pieces(joined) == JOINED[joined]


def test_random_sets_of_ops_come_back_from_their_joined_names():
    draw = random.Random(3)  # noqa: S311  # no secret
    names = [
        *sorted(_known()[1]),
        *("add", "mul", "gelu", "exp", "sub", "relu", "where", "cat", "mean", "sum"),
    ]
    sets = [sorted(set(draw.choices(names, k=draw.randint(1, 8)))) for _ in range(300)]
    wrong = [one for one in sets if pieces("_".join(one)) != tuple(one)]
    assert len(wrong) <= 2  # some names are another's with a word before it


def test_a_long_name_takes_no_time_that_grows_with_its_splits():
    assert len(pieces("_".join(["a_b_c_index_put"] * 150))) > 150


@pytest.mark.parametrize(
    ("name", "kind", "joined", "cut"),
    [
        ("triton_poi_fused__unsafe_view_gelu_mul_0", "poi", "_unsafe_view_gelu_mul", False),
        ("triton_red_fused_add_mean_mul_pow_rsqrt_0", "red", "add_mean_mul_pow_rsqrt", False),
        ("triton_tem_fused_addmm_relu_2", "tem", "addmm_relu", False),
        ("triton_unk_fused_sum_1", "unk", "sum", False),
        ("triton_poi_fused_add_0_0d1d2d3", "poi", "add", False),
        ("triton_per_fused_log2_1", "per", "log2", False),
        ("triton_for_fused_0", "for", "", False),
        ("triton_poi_fused_add_mu", "poi", "add_mu", True),
        ("graph_3_cpp_fused_cos_mul_0", "cpp", "cos_mul", False),
        ("cpp_fused_add_3", "cpp", "add", False),
        ("graph_6_cpp_fused_0", "cpp", "", False),
    ],
)
def test_a_generated_name_says_kind_and_ops(name, kind, joined, cut):
    found = generated(name)
    assert found is not None
    assert (found.kind, found.joined, found.cut) == (kind, joined, cut)


@pytest.mark.parametrize(
    "name", ["triton_", "triton__0d1d2d3de", "fused_bias_gelu", "aten::mul", "cpp_fused", ""]
)
def test_other_names_are_not_taken_for_generated_ones(name):
    found = generated(name)
    assert found is None or (found.cut and not found.joined)
