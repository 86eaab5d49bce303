"""The ops of fused attention: where each has its tensors and says that it is causal, and what that makes."""

import pytest

from tracehunch.facts.work import Call, NotRecorded, Operand, Work, causal_pairs, lower_right_pairs, work_of
from tracehunch.facts.work.attention_ops import _SCHEMAS
from tracehunch.facts.work.inputs import Input

B, H, KV, L, S, D = 2, 8, 2, 6, 10, 16


def tensors(layout: str, *, expanded: bool = False) -> list[Operand]:
    sizes = [(B, H, L, D), (B, KV, S, D), (B, KV, S, D)]
    if layout == "bshd":
        sizes = [(b, s, h, d) for b, h, s, d in sizes]
    strides = [None, (0, S * D, D, 1), (0, S * D, D, 1)] if expanded else [None] * 3
    return [Operand(size, "bf16", stride) for size, stride in zip(sizes, strides, strict=True)]


def call(
    name: str, n: int, layout: str, values: dict[int, str], more: dict[int, Input] | None = None
) -> Call:
    inputs: list[Input] = [None] * n
    at = 1 if "backward" in name else 0
    inputs[at : at + 3] = tensors(layout)
    for position, one in (more or {}).items():
        inputs[position] = one
    return Call(f"aten::{name}", tuple(inputs), tuple(values.get(position, "") for position in range(n)))


def flops(pairs: int, *, backward: bool) -> int:
    return 2 * B * H * pairs * (5 * D if backward else 2 * D)


CAUSAL = {
    "_scaled_dot_product_flash_attention": (7, "bhsd", {4: "True"}),
    "_scaled_dot_product_efficient_attention": (8, "bhsd", {6: "True"}),
    "_efficient_attention_forward": (14, "bshd", {9: "1"}),
    "_scaled_dot_product_cudnn_attention": (9, "bhsd", {6: "True"}),
    "_cudnn_attention_forward": (13, "bhsd", {10: "True"}),
    "_scaled_dot_product_fused_attention_overrideable": (8, "bhsd", {5: "True"}),
    "_scaled_dot_product_flash_attention_for_cpu": (7, "bhsd", {4: "True"}),
    "_scaled_dot_product_flash_attention_backward": (15, "bhsd", {11: "True"}),
    "_scaled_dot_product_efficient_attention_backward": (13, "bhsd", {11: "True"}),
    "_efficient_attention_backward": (20, "bshd", {14: "1"}),
    "_scaled_dot_product_cudnn_attention_backward": (16, "bhsd", {14: "True"}),
    "_cudnn_attention_backward": (16, "bhsd", {14: "True"}),
    "_scaled_dot_product_fused_attention_overrideable_backward": (17, "bhsd", {13: "True"}),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (10, "bhsd", {7: "True"}),
}
LOWER_RIGHT = {
    "_flash_attention_forward": (15, "bshd", {8: "True"}),
    "_flash_attention_backward": (17, "bshd", {11: "True"}),
}


@pytest.mark.parametrize("name", sorted(CAUSAL | LOWER_RIGHT))
def test_causal_counts_the_pairs_that_are_left_and_no_more(name: str) -> None:
    n, layout, values = (CAUSAL | LOWER_RIGHT)[name]
    backward = "backward" in name
    pairs = (causal_pairs if name in CAUSAL else lower_right_pairs)(L, S)
    assert work_of(call(name, n, layout, values)).flops == flops(pairs, backward=backward)
    none = {at: {"True": "False", "1": "0"}[value] for at, value in values.items()}
    assert work_of(call(name, n, layout, none)).flops == flops(L * S, backward=backward)
    assert work_of(call(name, n, layout, {})).flops is None  # not recorded: no guess


@pytest.mark.parametrize("name", sorted(_SCHEMAS))
def test_the_positions_are_those_of_torchs_schemas(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = [one for one in torch._C._jit_get_all_schemas() if one.name == f"aten::{name}"]
    if not found:
        pytest.skip("this version of PyTorch has no such op")
    for schema in found:
        mine = next(one for one in _SCHEMAS[name] if len(schema.arguments) in one.n_inputs)
        names = [argument.name for argument in schema.arguments]
        assert names[mine.query : mine.query + 3] == ["query", "key", "value"]
        assert names[mine.causal] == ("custom_mask_type" if mine.mask_type else "is_causal")
        assert mine.bias == -1 or names[mine.bias] in ("attn_bias", "bias", "attn_mask")
        assert mine.kept == -1 or names[mine.kept] == "compute_log_sumexp"
        there = [names[at] for at in mine.lengths if at < len(names)]
        assert set(there) <= {
            "cum_seq_q", "cum_seq_k", "cu_seqlens_q", "cu_seqlens_k", "seqused_k", "block_table", "seqlen_k",
        }  # fmt: skip
        assert all("window" in names[at] for at in mine.windows if at < len(names))


def test_lower_right_is_that_of_the_last_query() -> None:
    for queries, keys in ((3, 5), (5, 3), (4, 4), (1, 9)):
        counted = sum(j <= i + keys - queries for i in range(queries) for j in range(keys))
        assert lower_right_pairs(queries, keys) == counted


def test_bytes_read_and_write_each_tensor_once() -> None:
    once = 2 * (2 * B * H * L * D + 2 * B * KV * S * D)
    plain = call("_cudnn_attention_forward", 13, "bhsd", {8: "False", 10: "False"})
    assert work_of(plain) == Work(flops(L * S, backward=False), once, "bf16")
    kept = call("_cudnn_attention_forward", 13, "bhsd", {8: "True", 10: "False"})
    assert work_of(kept).bytes == once + 4 * B * H * L
    mask = Operand((B, H, L, S), "bf16", (0, 0, S, 1))
    masked = call("_cudnn_attention_forward", 13, "bhsd", {8: "False", 10: "False"}, {3: mask})
    assert work_of(masked).bytes == once + 2 * L * S
    back = call("_cudnn_attention_backward", 16, "bhsd", {14: "False"})
    assert work_of(back).bytes == 2 * (4 * B * H * L * D + 4 * B * KV * S * D) + 4 * B * H * L


def test_an_expanded_batch_is_read_once() -> None:
    inputs = (*tensors("bhsd", expanded=True), None, None, None, None, None)
    found = work_of(Call("aten::_scaled_dot_product_efficient_attention", inputs, ("",) * 6 + ("False", "")))
    assert found.bytes == 2 * (2 * B * H * L * D + 2 * KV * S * D)


@pytest.mark.parametrize(
    ("n", "values", "more"),
    [
        (15, {8: "True"}, {3: Operand((3,), "int32"), 4: Operand((3,), "int32")}),  # packed sequences
        (15, {8: "True"}, {13: Operand((2,), "int32")}),  # a cache of which a part is used
        (12, {8: "True"}, {}),  # no version's schema
        (15, {8: "True"}, {1: Operand((B, S, 3, D), "bf16")}),  # heads that cannot share
    ],
)
def test_lengths_that_are_in_tensors_are_not_guessed(
    n: int, values: dict[int, str], more: dict[int, Input]
) -> None:
    with pytest.raises(NotRecorded):
        work_of(call("_flash_attention_forward", n, "bshd", values, more))


def test_a_window_leaves_the_flops_open_and_the_bytes_known() -> None:
    windowed = work_of(call("_flash_attention_forward", 15, "bshd", {8: "True", 11: "128", 12: "0"}))
    assert windowed.flops is None
    assert windowed.bytes
    assert work_of(call("_flash_attention_forward", 15, "bshd", {8: "True", 11: "-1", 12: "-1"})).flops
