"""What fails a gate, and what an improvement brings along that must not."""

import pytest

EAGER, SDPA = "h200/models/llama_eager_prefill", "h200/models/llama_sdpa_prefill"


def failing(diff):
    return [one.text for one in diff.regressions if one.severity != "note"]


def test_a_gpu_that_waits_more_because_it_has_less_to_do_fails_nothing(changed):
    found = changed(EAGER, SDPA)
    assert [one.after.id for one in found.grown] == ["overhead-bound"]
    assert [one.severity for one in found.regressions if "overhead-bound" in one.text] == ["note"]
    assert failing(found) == []


def test_on_the_way_back_it_is_slower(changed):
    assert any("model_fwd is slower" in text for text in failing(changed(SDPA, EAGER)))


def test_waiting_for_another_rank_is_no_regression(changed):
    found = changed("h200/ranks/ddp/rank0", "h200/ranks/ddp/rank1")
    slower = [one for one in found.regressions if "is slower: GPU time" in one.text]
    assert slower
    assert {one.severity for one in slower} == {"note"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("h200/seeds/naive", "h200/seeds/naive_inplace"),
        ("h200/seeds/sdpa_math", "h200/seeds/sdpa_flash"),
        ("h200/ops/geglu_eager", "h200/ops/geglu_compiled"),
        ("h200/ops/naive_fp32", "h200/ops/naive_compiled"),
        ("h200/faults/opt_forloop", "h200/faults/opt_fused"),
        ("h200/faults/sync_item", "h200/faults/clean"),
        ("h200_by_hand/gpt2_eager_train", "h200_by_hand/compiled_train"),
        ("h200_waits/pinned_compute_stream", "h200_waits/prefetch_side_stream"),
        ("cpu/naive", "cpu/sdpa_flash"),
    ],
)
def test_improvements_fail_nothing(changed, before, after):
    assert failing(changed(before, after)) == []
