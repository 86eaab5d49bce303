from dataclasses import replace

import pytest

from tracehunch.attention import VARIANTS
from tracehunch.attention.guesses import guess_of
from tracehunch.attention.outcome import Device
from tracehunch.attention.workload import Workload

WORKLOAD = Workload(batch=8, heads=16, seq=1024, head_dim=64, kv_heads=16)
GPU = Device("cuda", "NVIDIA H200", "2.11.0+cu130")
BY_NAME = {variant.name: variant for variant in VARIANTS}


def claims(name, workload=WORKLOAD, kind="cuda"):
    return {claim.key: claim.expected for claim in BY_NAME[name].textbook(workload, kind)}


def test_the_series_is_in_its_order():
    order = ["naive", "naive_inplace", "sdpa_math", "sdpa_efficient", "sdpa_flash", "sdpa_cudnn", "sdpa_auto"]
    assert [variant.name for variant in VARIANTS] == order


def test_every_variant_says_in_one_line_what_changed():
    for variant in VARIANTS:
        assert variant.changed
        assert "\n" not in variant.changed
        assert len(variant.changed) < 76


def test_the_textbook_counts_one_kernel_an_operation_and_no_copies():
    kernels = {name: claims(name)["kernels"] for name in BY_NAME}
    assert kernels == {name: 5 if name.startswith("naive") else 1 for name in BY_NAME}
    assert {claims(name)["copies"] for name in BY_NAME} == {0}
    assert all("memsets" not in claims(name) for name in BY_NAME)


def test_on_a_cpu_the_textbook_counts_leaf_ops_and_claims_nothing_of_gpus():
    assert claims("naive", kind="cpu") == {"leaf_ops": 5}
    assert claims("sdpa_flash", kind="cpu") == {"leaf_ops": 1, "sdpa.backend": "flash"}


def test_full_attention_has_no_mask_operation():
    assert claims("naive", replace(WORKLOAD, causal=False))["kernels"] == 4


def test_grouped_heads_are_two_more_operations_for_naive_and_none_for_sdpa():
    grouped = replace(WORKLOAD, kv_heads=4)
    assert claims("naive", grouped)["kernels"] == 7
    assert claims("sdpa_auto", grouped)["kernels"] == 1


def test_tensor_cores_are_claimed_for_16_bit_products_only():
    assert claims("naive")["tensor_cores"] == "used"
    assert "tensor_cores" not in claims("naive", replace(WORKLOAD, dtype="float32"))


def test_a_backend_is_claimed_where_it_is_pinned():
    backends = {name: claims(name).get("sdpa.backend") for name in BY_NAME}
    assert backends == {
        "naive": None,
        "naive_inplace": None,
        "sdpa_math": "math",
        "sdpa_efficient": "efficient",
        "sdpa_flash": "flash",
        "sdpa_cudnn": "cudnn",
        "sdpa_auto": None,
    }


def test_all_claims_of_a_variant_are_about_its_own_label():
    for variant in VARIANTS:
        assert {claim.scope for claim in variant.textbook(WORKLOAD, "cuda")} == {variant.label}


def test_the_seal_covers_claims_and_what_they_were_made_for():
    guess = guess_of(BY_NAME["naive"], WORKLOAD, GPU)
    assert guess.seal == guess_of(BY_NAME["naive"], WORKLOAD, GPU).seal
    others = [
        guess_of(BY_NAME["naive_inplace"], WORKLOAD, GPU),
        guess_of(BY_NAME["naive"], replace(WORKLOAD, seq=2048), GPU),
        guess_of(BY_NAME["naive"], WORKLOAD, replace(GPU, torch="2.13.0")),
    ]
    assert guess.seal not in {other.seal for other in others}


@pytest.mark.parametrize("name", list(BY_NAME))
def test_every_claim_says_why(name):
    assert all(claim.why and claim.who == "textbook" for claim in BY_NAME[name].textbook(WORKLOAD, "cuda"))
