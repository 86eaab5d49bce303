"""Why calls ran on their backend, in a clause."""

import pytest

from tracehunch.predict.traced import SDPA, why_it_ran


def why(tree, ran):
    return why_it_ran(tree, [row for row in tree.ops.tolist() if tree.trace.name_of(row) == SDPA], ran)


@pytest.mark.parametrize("backend", ["math", "efficient"])
def test_a_backend_that_no_version_picks_was_pinned(tree_of, backend):
    said = why(tree_of(f"h200/seeds/shapes_sdpa_{backend}"), backend)
    assert said.startswith(
        "for these inputs every torch from 2.9 to 2.14 built for CUDA 13.0 picks cudnn by itself: "
        f"{backend} was pinned, or the others were switched off"
    )


def test_whatever_else_gives_the_backend_is_named(tree_of):
    said = why(tree_of("h200/seeds/shapes_sdpa_flash"), "flash")
    assert "use_deterministic_algorithms(True)" in said
    assert "TORCH_CUDNN_SDPA_DEPRIORITIZED=1" in said


def test_what_only_some_versions_pick_says_nothing_where_the_version_is_unknown(tree_of):
    assert why(tree_of("h200/ops/dropout_auto"), "cudnn") == ""


def test_with_the_version_it_is_told_exactly(tree_of):
    assert why(tree_of("cpu/sdpa_math"), "math").startswith(
        "for these inputs torch 2.13 picks flash by itself: math was pinned"
    )
    assert why(tree_of("cpu/sdpa_flash"), "flash") == "for these inputs torch 2.13 picks flash by itself"


def test_what_refused_is_told_where_math_was_picked(tree_of):
    said = why(tree_of("cpu/sdpa_dropout"), "math")
    assert said.endswith("picks math by itself (flash: dropout 0.1)")


def test_other_backends_other_rows_and_calls_without_shapes_say_nothing(tree_of):
    assert why(tree_of("cpu/sdpa_math"), "flex") == ""
    assert why_it_ran(tree_of("cpu/sdpa_math"), [], "math") == ""
    assert why(tree_of("h200/seeds/sdpa_math"), "math") == ""
