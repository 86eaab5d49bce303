"""Uses: all of a scope's time, each activity once, under its path of ops."""

import pytest

from tracehunch.compare.paths import op_paths, plain_name
from tracehunch.compare.placement import calls_of
from tracehunch.compare.uses import gpu_items, host_items, uses_of

ANNOTATED = ("annotation", "step", "whole")


def contents(look):
    scopes = [scope for scope in look.facts.scopes if scope.scope.kind in ANNOTATED]
    calls = calls_of(look.facts, scopes)
    uses = uses_of(look.facts, calls, gpu_items(look.facts, calls))
    return {scope.scope.name: (scope, found) for scope, found in zip(scopes, uses, strict=True)}


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("h200/seeds/naive", "attn_fwd"),
        ("h200/models/llama_sdpa_padded", "model_fwd"),
        ("h200/ops/geglu_compiled", "mlp_fwd"),
        ("h200/situations/unet_nchw", "step"),
    ],
)
def test_uses_hold_what_the_raw_file_holds(seen, by_name, name, scope):
    if scope not in contents(seen(name)):
        scope = next(iter(contents(seen(name))))
    _, uses = contents(seen(name))[scope]
    found = {}
    for use in uses:
        found[use.name] = found.get(use.name, 0) + use.time.value
    expected = by_name(name, scope)
    assert found.keys() == expected.keys()
    for key, time in expected.items():
        assert found[key] == pytest.approx(time, rel=0.02, abs=0.2)  # medians of parts do not add up


def test_an_activity_belongs_to_the_innermost_annotation_alone(seen):
    found = contents(seen("h200/models/llama_sdpa_train"))
    inner = sum(use.time.value for name in ("forward", "backward", "optimizer") for use in found[name][1])
    assert inner == pytest.approx(found["train_step"][0].value("gpu_time"), rel=0.01)
    assert sum(use.time.value for use in found["train_step"][1]) < 0.01 * inner
    assert not found["ProfilerStep"][1]


def test_what_was_launched_before_the_window_is_left_out(seen):
    scope, uses = contents(seen("h200/seeds/naive"))["whole"]
    assert scope.value("gpu_activities") == 23
    assert uses == []


def test_paths_go_through_backward_nodes_and_optimizers_but_not_through_frames(seen):
    tree = seen("h200/models/llama_sdpa_train_stack").facts.tree
    numbers, paths = op_paths(tree, tree.ops)
    named = {paths[number] for number in numbers.tolist()}
    node = "autograd::engine::evaluate_function: MmBackward0"
    assert (node, "MmBackward0", "aten::mm") in named
    assert ("aten::linear", "aten::matmul", "aten::mm") in named
    assert any(path[0].startswith("Optimizer.step#") for path in named if path)
    assert not any(name.startswith(("nn.Module", "ProfilerStep")) for path in named for name in path)
    for row, number in list(zip(tree.ops.tolist(), numbers.tolist(), strict=True))[:200]:
        assert paths[number][-1] == plain_name(tree.trace.name_of(row))


def test_compiled_regions_are_no_part_of_a_path_and_numbers_of_kernels_neither(seen):
    tree = seen("h200/ops/geglu_compiled").facts.tree
    numbers, paths = op_paths(tree, tree.ops)
    named = {name for number in numbers.tolist() for name in paths[number]}
    assert not any(name.startswith(("Torch-Compiled", "## Call")) for name in named)
    assert "triton_poi_fused__unsafe_view_gelu_mul" in named


def test_host_time_is_each_op_s_own(seen):
    look = seen("cpu/naive")
    scopes = [scope for scope in look.facts.scopes if scope.scope.name == "attn_fwd"]
    calls = calls_of(look.facts, scopes)
    (uses,) = uses_of(look.facts, calls, host_items(look.facts, calls, with_runtime=False))
    total = sum(use.time.value for use in uses)
    assert total == pytest.approx(scopes[0].value("cpu_time"), rel=0.02)
    assert {use.kind for use in uses} == {"op"}
