"""SDPA calls: their inputs, in what they differ, and what PyTorch would have picked."""

import pytest

from tracehunch.compare.dispatch import why_it_ran
from tracehunch.compare.sdpa_calls import SDPA, sdpa_inputs


def first_call(look):
    tree = look.facts.tree
    row = next(row for row in tree.ops.tolist() if tree.trace.name_of(row) == SDPA)
    return sdpa_inputs(tree, row)


@pytest.mark.parametrize(
    ("name", "causal", "gqa", "mask"),
    [
        ("h200/models/llama_sdpa_prefill", True, True, None),
        ("h200/models/llama_sdpa_padded", False, False, "4 x 1 x 1024 x 1024 bool"),
        ("h200/ops/floatmask_auto", False, False, "1024 x 1024 bf16"),
        ("h200/ops/gqa_auto", True, True, None),
    ],
)
def test_inputs_are_read(seen, name, causal, gqa, mask):
    found = first_call(seen(name))
    assert (found.is_causal, found.enable_gqa) == (causal, gqa)
    assert (None if found.mask is None else str(found.mask)) == mask


def test_without_shapes_they_are_unknown(seen):
    assert first_call(seen("h200/seeds/sdpa_flash")) is None


@pytest.mark.parametrize("backend", ["math", "efficient"])
def test_a_backend_that_no_version_picks_was_pinned(seen, backend):
    look = seen(f"h200/seeds/shapes_sdpa_{backend}")
    said = why_it_ran(backend, first_call(look), look.facts.tree.trace)
    assert said.startswith("for these inputs every torch from 2.9 to 2.14 picks cudnn or flash by itself")
    assert f"{backend} was pinned" in said


def test_a_backend_that_some_version_picks_says_nothing_where_the_version_is_unknown(seen):
    look = seen("h200/seeds/shapes_sdpa_flash")
    assert why_it_ran("flash", first_call(look), look.facts.tree.trace) == ""


def test_with_the_version_it_is_told_exactly(seen):
    look = seen("cpu/sdpa_math")
    said = why_it_ran("math", first_call(look), look.facts.tree.trace)
    assert said.startswith("for these inputs torch 2.13 picks flash by itself: math was pinned")


def test_unknown_backends_and_inputs_say_nothing(seen):
    trace = seen("cpu/sdpa_math").facts.tree.trace
    assert why_it_ran("math", None, trace) == ""
    assert why_it_ran("flex", first_call(seen("cpu/sdpa_math")), trace) == ""
