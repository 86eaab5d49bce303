"""What a comparison must say of pairs of real traces, each number held against a count over the raw JSON."""

import json

import pytest

PREFILL, PADDED = "h200/models/llama_sdpa_prefill", "h200/models/llama_sdpa_padded"


def scope_of(diff, name):
    return next(scope for scope in diff.scopes if scope.pair.after.scope.name == name)


def change_of(scope, kind, op):
    """The changes of a kind whose uses were launched by, or stand under, an op."""
    found = [
        change
        for change in scope.changes
        if change.kind == kind and any(op in use.path for use in (*change.before, *change.after))
    ]
    assert len(found) == 1, [(one.kind, one.at) for one in scope.changes]
    return found[0]


def causes(change):
    return {cause.id: cause.text for cause in change.causes}


def test_naive_to_in_place_says_that_the_copy_went_and_what_that_saved(changed, counted, seen):
    names = "h200/seeds/naive", "h200/seeds/naive_inplace"
    (change,) = scope_of(changed(*names), "attn_fwd").changes
    n, time = counted(names[0], "attn_fwd", lambda event: event["name"].startswith("Memcpy DtoD"))
    assert (change.kind, change.delta_us, n) == ("went", pytest.approx(-time), 1)
    assert counted(names[1], "attn_fwd", lambda event: "Memcpy" in event["name"]) == (0, 0)
    (use,) = change.before
    assert use.name == "Memcpy DtoD (Device -> Device)"
    assert use.path == ("aten::masked_fill", "aten::clone", "aten::copy_")
    assert causes(change)["op-went"] == (
        "aten::masked_fill is not called any more; aten::masked_fill_ is, in its place"
    )
    assert "clones its input" in causes(change)["hidden-copy"]
    assert [finding.id for finding in changed(*names).gone] == ["hidden-copy"]
    assert not changed(*names).regressions
    rows = [event["name"] for event in raw_of(seen(names[0]), change.evidence_before)]
    assert rows == ["Memcpy DtoD (Device -> Device)"] * 3


def raw_of(look, events):
    """The events at these positions of the file."""
    trace = look.facts.tree.trace
    position = {int(event): row for row, event in enumerate(trace.event)}
    return [{"name": trace.name_of(position[event])} for event in events]


def test_the_way_back_says_that_the_copy_appeared_and_is_a_regression(changed):
    diff = changed("h200/seeds/naive_inplace", "h200/seeds/naive")
    (change,) = scope_of(diff, "attn_fwd").changes
    assert change.kind == "appeared"
    assert [finding.id for finding in diff.new] == ["hidden-copy"]
    assert [(one.severity, one.text.split(":")[0]) for one in diff.regressions] == [
        ("warning", "attn_fwd is slower"),
        ("warning", "new finding hidden-copy in attn_fwd"),
    ]


def test_compiled_geglu_says_which_kernels_were_fused_into_which(changed, by_name):
    names = "h200/ops/geglu_eager", "h200/ops/geglu_compiled"
    diff = changed(*names)
    change = next(one for one in scope_of(diff, "mlp_fwd").changes if one.kind == "fused")
    before, after = (by_name(name, "mlp_fwd") for name in names)
    elementwise = [time for name, time in before.items() if "elementwise" in name]
    assert len(elementwise) == 2
    (generated,) = [name for name in after if name.startswith("triton_")]
    assert sorted(use.op for use in change.before) == ["aten::gelu", "aten::mul"]
    assert [use.name for use in change.after] == [generated]
    assert change.delta_us == pytest.approx(after[generated] - sum(elementwise), abs=0.01)
    assert causes(change)["fused"] == f"torch.compile merges aten::mul and aten::gelu into {generated}"
    assert any("torch.compile" in note for note in diff.notes)


def test_the_way_back_says_that_they_are_no_longer_fused(changed):
    diff = changed("h200/ops/geglu_compiled", "h200/ops/geglu_eager")
    change = next(one for one in scope_of(diff, "mlp_fwd").changes if one.kind == "unfused")
    assert [use.op for use in change.after] == ["aten::mul", "aten::gelu"]
    assert causes(change)["unfused"].startswith("aten::mul and aten::gelu run by themselves")


@pytest.mark.parametrize("shapes", [False, True], ids=["no shapes", "shapes"])
def test_math_to_flash_says_why(changed, counted, shapes):
    prefix = "h200/seeds/shapes_" if shapes else "h200/seeds/"
    names = f"{prefix}sdpa_math", f"{prefix}sdpa_flash"
    (change,) = scope_of(changed(*names), "sdpa_fwd").changes
    assert (change.kind, change.at) == ("replaced", ("aten::scaled_dot_product_attention",))
    sides = [counted(name, "sdpa_fwd", lambda event: event["cat"] == "kernel") for name in names]
    assert [sum(use.per_call for use in uses) for uses in (change.before, change.after)] == [20, 1]
    assert [side[0] for side in sides] == [20, 1]
    assert change.delta_us == pytest.approx(sides[1][1] - sides[0][1], rel=0.005)  # medians do not add up
    said = causes(change)
    assert said["sdpa-backend"].startswith(
        "SDPA runs on flash, it ran on math: 20 kernels a call -> 1 kernel"
    )
    assert ("dispatcher" in said) is shapes
    if shapes:
        assert "picks cudnn by itself: flash was pinned" in said["dispatcher"]


def test_the_padded_model_says_everything_that_a_mask_costs(changed, counted):
    scope = scope_of(changed(PREFILL, PADDED), "model_fwd")
    slower = change_of(scope, "slower", "aten::_cudnn_attention_forward")
    for name, uses, each_us in ((PREFILL, slower.before, 33), (PADDED, slower.after, 76)):
        n, time = counted(name, "model_fwd", lambda event: "flash_fprop" in event["name"])
        (use,) = uses
        assert (use.per_call, n) == (6, 6)
        assert use.time.value == pytest.approx(time, abs=0.01)
        assert round(use.time.value / 6) == each_us
    said = causes(slower)["sdpa-inputs"]
    assert said.startswith("SDPA stays on cudnn, but is_causal is gone (True -> False); enable_gqa is gone")
    assert "a mask is there (attn_mask: 4 x 1 x 1024 x 1024 bool)" in said
    assert "16 key and value heads, before 4" in said


def test_the_padded_model_s_inputs_are_as_the_file_records_them(raw_events):
    stated = []
    for name in (PREFILL, PADDED):
        calls = [e["args"] for e in raw_events(name) if e["name"] == "aten::scaled_dot_product_attention"]
        stated.append(
            {
                json.dumps([c["Concrete Inputs"][5], c["Concrete Inputs"][7], c["Input type"][3]])
                for c in calls
            }
        )
    assert stated == [{'["True", "True", ""]'}, {'["False", "False", "bool"]'}]


def test_the_padded_model_s_clones_come_from_repeat_kv(changed, raw_events):
    scope = scope_of(changed(PREFILL, PADDED), "model_fwd")
    clones = change_of(scope, "appeared", "aten::reshape")
    assert [(use.per_call, use.path) for use in clones.after] == [
        (12, ("aten::reshape", "aten::clone", "aten::copy_"))
    ]
    said = causes(clones)
    assert said["op-count"] == "aten::reshape is called 6 -> 18 times a call"
    assert "4 x 4 x 4 x 1024 x 64 bf16, dimension 2 repeated 4 times" in said["expanded-copy"]
    assert "repeat_kv" in said["expanded-copy"]
    n_expanded = [
        sum(
            len(event["args"]["Input Dims"][0]) == 5 and event["args"]["Input Strides"][0][2] == 0
            for event in raw_events(name)
            if event["name"] == "aten::clone"
        )
        for name in (PREFILL, PADDED)
    ]
    assert n_expanded == [0, 12]


def test_the_padded_model_converts_its_mask_in_every_call(changed):
    scope = scope_of(changed(PREFILL, PADDED), "model_fwd")
    masks = change_of(scope, "appeared", "aten::where")
    assert sum(use.per_call for use in masks.after) == 18
    assert "every SDPA call turns its boolean mask into one that is added" in causes(masks)["mask-conversion"]


def test_eager_to_sdpa_says_that_attention_was_built_by_hand(changed, counted):
    names = "h200/models/llama_eager_prefill", PREFILL
    scope = scope_of(changed(*names), "model_fwd")
    attention = change_of(scope, "replaced", "aten::_cudnn_attention_forward")
    assert {use.op for use in attention.before} == {"aten::bmm", "aten::_softmax"}
    assert causes(attention)["sdpa-backend"] == (
        "attention runs in SDPA (cudnn) now; before it was built from aten::_softmax and aten::bmm: "
        "18 kernels a call -> 6 kernels"
    )
    cast = change_of(scope, "went", "aten::softmax")
    assert cast.delta_us == pytest.approx(-1153.878, abs=0.01)
    assert "1 fewer for each SDPA call" in causes(cast)["attention-step"]
    total = sum(change.delta_us for change in scope.changes)
    kernels = [counted(name, "model_fwd", lambda _: True)[1] for name in names]
    assert total == pytest.approx(kernels[1] - kernels[0], rel=0.01)


def test_flash_to_cudnn_is_another_backend_not_another_tile(changed):
    (change,) = scope_of(changed("h200/seeds/sdpa_flash", "h200/seeds/sdpa_cudnn"), "sdpa_fwd").changes
    assert change.kind == "replaced"
    assert [use.kind for use in change.after] == ["kernel", "memset"]
    assert causes(change)["sdpa-backend"] == "SDPA runs on cudnn, it ran on flash"


def test_a_fused_optimizer_is_told_from_the_loop_over_tensors(changed, counted):
    names = "h200/faults/opt_forloop", "h200/faults/opt_fused"
    (change,) = scope_of(changed(*names), "optimizer").changes
    assert change.at == ("Optimizer.step#AdamW.step",)
    assert causes(change)["optimizer"].startswith("AdamW runs fused (fused=True")
    assert [sum(use.per_call for use in uses) for uses in (change.before, change.after)] == [
        counted(name, "optimizer", lambda _: True)[0] for name in names
    ]


def test_a_cold_start_is_within_noise_and_said(changed, raw_events):
    names = "h200/ops/matmul_add_64_cold", "h200/ops/matmul_add_64_warm"
    diff = changed(*names)
    assert not scope_of(diff, "matmul_add").changes
    assert not diff.regressions
    calls = [[e for e in raw_events(name) if e["name"] == "matmul_add"] for name in names]
    calls = [[e for e in found if e["cat"] == "user_annotation"] for found in calls]
    firsts = [min(found, key=lambda event: event["ts"])["dur"] for found in calls]
    (note,) = diff.notes
    assert f"takes {firsts[0]:.1f} us -> {firsts[1]:.1f} us" in note
    assert note.endswith("a cold start, left out of medians")


def test_a_trace_differs_in_nothing_from_itself(changed):
    for name in (
        "h200/seeds/naive",
        "h200/models/llama_sdpa_train",
        "cpu/train_mlp",
        "h200/situations/decode_cuda_graph",
    ):
        diff = changed(name, name)
        assert not any(scope.changes or scope.host or scope.delta_us for scope in diff.scopes), name
        assert (diff.new, diff.gone, diff.grown, diff.regressions, diff.cannot_tell) == ((), (), (), (), ())
        assert {fact.outcome for scope in diff.scopes for fact in scope.facts} == {"same"}


@pytest.mark.parametrize(
    "name", ["naive", "naive_inplace", "sdpa_math", "sdpa_flash", "sdpa_cudnn", "sdpa_efficient"]
)
def test_two_recordings_of_the_same_work_are_the_same_within_noise(changed, name):
    diff = changed(f"h200/seeds/{name}", f"h200/seeds/shapes_{name}")
    assert not any(scope.changes or scope.delta_us for scope in diff.scopes)
    assert not diff.regressions
    assert any("recording costs time on the host" in note for note in diff.notes)


def test_a_cpu_trace_does_not_compare_with_one_of_a_gpu(changed):
    diff = changed("cpu/naive", "h200/seeds/naive")
    assert not diff.scopes
    (unknown,) = diff.cannot_tell
    assert "kernels, copies and times do not compare" in unknown.reason
    assert "ProfilerActivity.CUDA" in unknown.record_with
    assert (diff.new, diff.gone, diff.regressions) == ((), (), ())


def test_on_a_cpu_ops_take_the_place_of_kernels(changed, raw_events):
    scope = scope_of(changed("cpu/naive", "cpu/naive_inplace"), "attn_fwd")
    (change,) = scope.changes
    assert causes(change)["op-went"].endswith("aten::masked_fill_ is, in its place")
    assert sum(use.per_call for use in change.after) == 1
    spans = sorted(e["dur"] for e in raw_events("cpu/naive_inplace") if e["name"] == "aten::masked_fill_")
    assert change.after[0].time.value == pytest.approx(spans[len(spans) // 2], abs=0.01)
    assert scope.time_key == "wall_time"
