"""Made uses: what matches what, from the strictest likeness to the loosest."""

from tracehunch.compare.matching import match_uses
from tracehunch.compare.model import Spread, Use
from tracehunch.kernels import classify_activity

TILE = "nvjet_sm90_tst_{}_64x4_1x2_h_bz_coopA_TNT"
MM = ("aten::linear", "aten::matmul", "aten::mm")
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<8, at::native::{}(at::TensorIteratorBase&)>"


def use(name, path, n=1, time=10.0, kind="kernel"):
    identity = None if kind in ("op", "call") else classify_activity(name, kind)
    return Use(name, kind, tuple(path), n, Spread(time, time, time, 3), identity, ())


def matched(before, after):
    return [
        (one.how, [u.name for u in one.before], [u.name for u in one.after])
        for one in match_uses(before, after)
    ]


def test_the_same_kernel_under_the_same_ops_is_the_same_whatever_the_count():
    name = TILE.format("256x128")
    assert matched([use(name, MM, 12)], [use(name, MM, 18)]) == [("same", [name], [name])]


def test_another_tile_of_the_same_library_is_another_kernel():
    first, second = TILE.format("256x128"), TILE.format("128x256")
    assert matched([use(first, MM)], [use(second, MM)]) == [("kernel", [first], [second])]


def test_a_tile_is_not_mistaken_for_another_that_runs_on_both_sides():
    one, two, three = (TILE.format(tile) for tile in ("256x128", "128x256", "192x128"))
    found = matched([use(one, MM, 6), use(two, MM, 12)], [use(two, MM, 12), use(three, MM, 6)])
    assert found == [("same", [two], [two]), ("kernel", [one], [three])]


def test_a_kernel_of_another_library_under_the_same_op_is_another_kernel():
    first, second = TILE.format("256x128"), "ampere_sgemm_32x128_tn"
    assert matched([use(first, MM)], [use(second, MM)]) == [("kernel", [first], [second])]


def test_the_same_kernel_under_other_ops_is_the_same_but_not_a_copy():
    name = TILE.format("256x128")
    assert matched([use(name, MM)], [use(name, ("aten::mm",))])[0][0] == "same"
    copy = "Memcpy DtoD (Device -> Device)"
    paths = ("aten::reshape", "aten::clone", "aten::copy_"), ("aten::to", "aten::_to_copy", "aten::copy_")
    found = matched(*([use(copy, path, kind="memcpy")] for path in paths))
    assert [how for how, *_ in found] == ["alone", "alone"]


def test_a_replay_of_a_graph_has_no_ops_and_is_matched_by_name():
    name = TILE.format("256x128")
    assert matched([use(name, MM)], [use(name, ())]) == [("same", [name], [name])]


def test_what_one_op_does_by_other_ops_is_replaced():
    sdpa = "aten::scaled_dot_product_attention"
    before = [
        use("ampere_sgemm_32x128_tn", (sdpa, "aten::_scaled_dot_product_attention_math", "aten::bmm"), 2)
    ]
    after = [
        use("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(...)", (sdpa, "aten::_efficient_attention_forward"))
    ]
    assert [how for how, *_ in matched(before, after)] == ["replaced"]


def test_generated_kernels_stand_for_the_ops_in_their_names():
    gelu, mul, cat = (
        use(ELEMENTWISE.format(f), (op,))
        for f, op in (("Gelu", "aten::gelu"), ("Mul", "aten::mul"), ("Neg", "aten::neg"))
    )
    fused = use("triton_poi_fused_gelu_mul_0", ("triton_poi_fused_gelu_mul",))
    found = match_uses([gelu, mul, cat], [fused])
    assert [(one.how, set(one.before), one.after) for one in found] == [
        ("fused", {gelu, mul}, (fused,)),
        ("alone", {cat}, ()),
    ]
    assert [one.how for one in match_uses([fused], [gelu, mul])] == ["unfused"]


def test_a_word_within_a_word_is_no_op():
    add = use(ELEMENTWISE.format("Add"), ("aten::add",))
    fused = use("triton_poi_fused_addmm_gelu_0", ("triton_poi_fused_addmm_gelu",))
    assert [one.how for one in match_uses([add], [fused])] == ["alone", "alone"]


def test_generated_kernels_of_two_compilations_match_without_their_numbers():
    first, second = "triton_poi_fused_gelu_mul_0", "triton_poi_fused_gelu_mul_3"
    path = ("triton_poi_fused_gelu_mul",)
    assert [one.how for one in match_uses([use(first, path)], [use(second, path)])] == ["kernel"]


def test_everything_is_matched_exactly_once():
    names = [TILE.format(tile) for tile in ("256x128", "128x256", "192x128")]
    before = [use(name, MM, n) for n, name in enumerate(names, 1)] + [
        use(ELEMENTWISE.format("Gelu"), ("aten::gelu",))
    ]
    after = [use(name, ("aten::mm",), n) for n, name in enumerate(names[1:], 1)] + [
        use("triton_poi_fused_gelu_0", ("t",))
    ]
    for one, two in ((before, after), (after, before)):
        found = match_uses(one, two)
        assert sorted(id(u) for match in found for u in match.before) == sorted(map(id, one))
        assert sorted(id(u) for match in found for u in match.after) == sorted(map(id, two))
