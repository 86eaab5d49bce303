"""The rules tables: each rule matches its own examples, no other rule does, and none is a catch-all."""

import gzip
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracehunch.kernels.identity import classify, matches
from tracehunch.kernels.mangled import MATCHED_PREFIX, canonical
from tracehunch.kernels.rule import all_rules, parse_rule

RULES = all_rules().rules
EXAMPLES = [(rule.id, example) for rule in RULES for example in rule.examples]

# names that people give their own kernels, and near misses of real ones
UNKNOWN = [
    "my_kernel",
    "add_kernel",
    "fused_bias_gelu",
    "_layer_norm_fwd_fused",
    "softmax_kernel",
    "matmul_kernel",
    "gemm_kernel",
    "sgemm",
    "reduce_kernel",
    "copy_kernel",
    "dot_kernel",
    "flash_attention_forward",
    "flash_fwd_kernel",
    "_attn_fwd",
    "attn_fwd_inner",
    "attention",
    "nvjet",
    "nvjet_",
    "nvjets_tst_64x8",
    "my_nvjet_sm90_tst_64x8_64x16_1x2_h_bz_TNT",
    "cutlass",
    "cutlass_gemm",
    "ampere_sgemm",
    "ampere_kernel_128x64_nn",
    "sm90_kernel",
    "sm80_xmma_attention",
    "cudnn_kernel",
    "cudnn::unheard_of::kernel<float>(float*)",
    "triton_kernel",
    "triton_softmax_kernel",
    "tritonish_poi_fused_add_0",
    "nccl_test_kernel",
    "ncclKernelish",
    "Cijk_",
    "rocblas",
    "kernel",
    "k",
    "",
    " ",
    "void kernel(float*)",
    "void my::ns::vectorized_elementwise_kernel<4, F>(int)",
    "void myproject::at::native::reduce_kernel<512, 1, X>(X)",
    "void saxpy<float>(int, float, float*, float*)",
    "void gemm<128, 128, 8>(float const*, float const*, float*)",
    "void at::native::unheard_of_kernel<float>(float*)",
    "void at::native::(anonymous namespace)::some_new_kernel<c10::BFloat16>(long)",
    "void vllm::unheard_of<float>(float*)",
    "void flashinfer::unheard_of<float>(float*)",
    "aiter::unheard_of",
    "_ZN4user6kernelEPf",
    "_Z6kernelPf",
    "_ZN9999bad",
    "cub",
    "void cub::my_extension<int>(int*)",
    "void thrust::mine<int>(int*)",
    "ck_tile::kentry<1, ck_tile::UnheardOf<int> >(int)",
    "cuda_kernel_0d",
    "version_2_0d",
    "layer_01",
    "Memcpy",
    "__global__",
    "🙂",
]


@pytest.mark.parametrize(("rule_id", "example"), EXAMPLES)
def test_an_example_is_matched_by_its_rule_alone(rule_id: str, example: str) -> None:
    assert [rule.id for rule, _ in matches(example)] == [rule_id]
    identity = classify(example)
    assert identity.classified
    assert identity.unit in {"tensor-core", "cuda-core", "mfma", "vector", "unknown", "none"}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_name_stays_unclassified(name: str) -> None:
    identity = classify(name)
    assert (identity.library, identity.algorithm, identity.rule) == ("unclassified", "unclassified", None)


def test_rule_ids_are_unique() -> None:
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_well_formed(rule) -> None:
    words = all_rules().words
    groups = re.compile(rule.pattern).groupindex
    assert rule.pattern.startswith("^")
    assert rule.source
    assert rule.examples
    assert rule.vendor in {"", "amd", "nvidia"}
    templates = (
        rule.library,
        rule.algorithm,
        rule.unit,
        rule.dtype,
        *(template for _, template in rule.fields),
    )
    for template in templates:
        for text in template.alternatives:
            for group, table in re.findall(r"\{(\w+)(?:\|(\w+)|\?[^{}]*)?\}", text):
                assert group in groups
                assert not table or table in words


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_example_has_a_literal_of_its_rule(rule) -> None:
    assert all(any(literal in canonical(example) for literal in rule.literals) for example in rule.examples)


def test_every_word_table_is_used() -> None:
    used = {
        table
        for rule in RULES
        for template in (
            rule.library,
            rule.algorithm,
            rule.unit,
            rule.dtype,
            *(template for _, template in rule.fields),
        )
        for text in template.alternatives
        for table in re.findall(r"\{\w+\|(\w+)\}", text)
    }
    assert used == set(all_rules().words)


def test_a_rule_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown keys \['colour'\]"):
        parse_rule({"id": "x", "colour": "red"}, {})


def kernel_names(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*.json.gz")):
        with gzip.open(path) as file:
            events = json.load(file)["traceEvents"]
        for name in {e["name"] for e in events if str(e.get("cat", "")).lower() == "kernel"}:
            yield path.name, name


def test_every_kernel_of_the_recorded_traces_has_exactly_one_rule(h200: Path) -> None:
    found = 0
    for trace, name in kernel_names(h200):
        ids = [rule.id for rule, _ in matches(name)]
        if trace == "triton_user_kernel.json.gz" and not ids:
            continue  # its name is the user's own: the launch tells, not the name
        assert len(ids) == 1, (trace, name, ids)
        assert classify(name).classified
        found += 1
    assert found > 0


@pytest.mark.shared
def test_every_kernel_of_the_public_traces_has_exactly_one_rule(public_traces: Path) -> None:
    for trace, name in kernel_names(public_traces):
        ids = [rule.id for rule, _ in matches(name)]
        assert len(ids) == 1, (trace, name, ids)
        assert classify(name).classified


HOSTILE = [
    "void at::native::" + "a" * 65_536,
    "void at::native::vectorized_elementwise_kernel<4, " + "at::native::" * 6_000,
    "void at::native::vectorized_elementwise_kernel<4, at::native::F(" + "{lambda()#1}::" * 5_000,
    "void at::native::elementwise_kernel<128, 4, " + "#1}" * 20_000,
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<" + "unsigned " * 8_000,
    "void at::native::direct_copy_kernel" + "#1}{lambda(" * 6_000,
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda"
    + "#1}{lambda(a" * 6_000,
    "triton_poi_fused_" + "_a" * 32_000,
    "triton_tem_fused_" + "mm" * 32_000,
    "triton_tem_fused_" + "_mm_x" * 16_000 + "!",
    "nvjet_sm90_tst_64x8_" + "_coop" * 13_000,
    "nvjet_" + "64x8_" * 13_000,
    "sm90_xmma_gemm_bf16" + "bf16_" * 13_000,
    "Cijk_Alik_Bljk_" + "B_" * 30_000,
    "_ZN" + "1a" * 32_000 + "E",
    "_ZN" + "5aiter" * 10_000,
    "add_kernel_0d" + "1d2d" * 16_000 + "x",
    "(anonymous namespace)::" * 3_000,
    "_GLOBAL__N__" * 5_000,
    "std::enable_if<" * 4_000,
    "cutlass::device_kernel<cutlass::gemm::kernel::" + "a<" * 30_000,
    "cutlass::device_kernel<flash::FlashAttnFwdSm90<" + "cute::tuple<cute::C<1>, " * 3_000,
    "void cub::" + "cub::Device" * 6_000,
    "ck_tile::kentry<" + "ck_tile::" * 8_000,
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_" + "knob_" * 13_000,
]


def _seconds(name: str) -> float:
    start = time.thread_time()
    list(matches(name))
    return time.thread_time() - start


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: name[:40])
def test_a_hostile_name_takes_no_time(name: str) -> None:
    classify("warm up, so that compiling patterns does not count")
    assert any(_seconds(name) < 0.05 for _ in range(10))  # a pattern that goes back and forth takes many
    assert len(canonical(name)) <= MATCHED_PREFIX
