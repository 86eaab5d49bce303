"""What a reader is told of how two traces were recorded and matched."""

import pytest

TWO_PROGRAMS = "these may be two programs"


@pytest.mark.parametrize(
    ("before", "after", "alike"),
    [
        ("h200/situations/gpt_recompiles", "h200/models/llama_sdpa_train", False),
        ("h200/faults/clean", "h200/faults/two_streams", False),
        ("h200/faults/clean", "h200/faults/tiny_batch", True),
        ("h200/seeds/naive", "h200/seeds/sdpa_flash", True),
        ("h200/seeds/sdpa_math", "h200/seeds/sdpa_flash", True),
        ("h200/models/llama_eager_prefill", "h200/models/llama_sdpa_prefill", True),
        ("h200/models/llama_sdpa_prefill", "h200/models/llama_sdpa_compiled", True),
        ("h200_by_hand/gpt2_eager_train", "h200_by_hand/compiled_train", True),
        ("cpu/naive", "cpu/sdpa_flash", True),
    ],
)
def test_two_programs_are_told_from_two_variants_of_one(changed, before, after, alike):
    said = [note for note in changed(before, after).notes if note.startswith(TWO_PROGRAMS)]
    assert bool(said) is not alike


def test_one_call_on_both_sides_is_said_once(changed):
    name = "h200/models/llama_sdpa_padded"
    (note,) = [note for note in changed(name, name).notes if "no spread" in note]
    assert note.startswith("both traces have one call")
    assert "GPU times count as different from 6% on, host times from 20%" in note


def test_what_autotuning_tried_is_not_the_programs_own(changed):
    found = changed("h200/situations/gpt_recompiles", "h200/models/llama_sdpa_train")
    (first, *_) = found.scopes[0].changes
    assert "CachingAutotuner" in first.at[0]
    assert "not the program's own work" in {cause.id: cause.text for cause in first.causes}["autotuning"]
