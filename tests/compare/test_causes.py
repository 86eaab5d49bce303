"""Why something changed: from inputs, grids, copies, flags, and what cannot be told."""

import gzip
import json

import pytest

from tracehunch.compare import diff
from tracehunch.judge import examine
from tracehunch.trace import read_bytes
from tracehunch.trace.environment import ENVIRONMENT_KEY

FLAGS = {"sdp_flash": "True", "sdp_math": "True", "matmul_allow_tf32": "False"}


@pytest.fixture(scope="session")
def file(h200):
    """A function that loads a trace's JSON, changes it, and returns a look at it."""

    def _file(name, edit=lambda _: None, *, own=None):
        with gzip.open(h200 / f"{name}.json.gz") as stream:
            loaded = json.load(stream)
        edit(loaded["traceEvents"])
        if own is not None:
            loaded[ENVIRONMENT_KEY] = own
        return examine(read_bytes(json.dumps(loaded).encode(), f"{name}.json"))

    return _file


def changes(before, after):
    return [change for scope in diff(before, after).scopes for change in scope.changes]


def slow(part, factor=1.5):
    """An edit that makes the GPU events slower whose name holds a part."""

    def edit(events):
        for event in events:
            if event.get("cat") in ("kernel", "gpu_memcpy") and part in event["name"]:
                event["dur"] *= factor

    return edit


def test_the_same_kernel_on_the_same_inputs_is_not_the_code(file):
    name = "seeds/shapes_naive"
    (change,) = changes(file(name), file(name, slow("softmax")))
    assert (change.kind, change.at[0]) == ("slower", "aten::softmax")
    assert [(cause.id, cause.confidence) for cause in change.causes] == [("same-kernel", "medium")]


def test_without_shapes_it_cannot_be_told(file):
    name = "seeds/naive"
    (change,) = changes(file(name), file(name, slow("softmax")))
    assert [(cause.id, cause.confidence) for cause in change.causes] == [("inputs-unknown", "low")]
    assert "record_shapes=True" in change.causes[0].text


def test_other_inputs_are_named(file):
    def edit(events):
        slow("softmax")(events)
        for event in events:
            if event["name"] in ("aten::softmax", "aten::_softmax"):
                event["args"]["Input Dims"][0] = [8, 16, 2048, 1024]

    (change,) = changes(file("seeds/shapes_naive"), file("seeds/shapes_naive", edit))
    assert [cause.id for cause in change.causes] == ["inputs"]
    assert "(8 x 16 x 2048 x 1024 bf16)" in change.causes[0].text
    assert "(8 x 16 x 1024 x 1024 bf16)" in change.causes[0].text


def test_another_grid_is_more_work(file):
    def edit(events):
        slow("softmax")(events)
        for event in events:
            if event.get("cat") == "kernel" and "softmax" in event["name"]:
                event["args"]["grid"] = [event["args"]["grid"][0] * 2, 1, 1]

    (change,) = changes(file("seeds/naive"), file("seeds/naive", edit))
    (cause,) = change.causes
    assert cause.id == "grid"
    assert cause.text.endswith("thread blocks a launch")


def test_a_copy_of_more_bytes(file):
    def edit(events):
        slow("Memcpy DtoD")(events)
        for event in events:
            if event.get("cat") == "gpu_memcpy":
                event["args"]["bytes"] *= 2

    (change,) = changes(file("seeds/naive"), file("seeds/naive", edit))
    assert [cause.text for cause in change.causes] == ["a copy moves 512 MiB, it moved 256 MiB"]


def test_a_slower_copy_has_its_bandwidth(file):
    (change,) = changes(file("seeds/naive"), file("seeds/naive", slow("Memcpy DtoD", 2)))
    assert [cause.id for cause in change.causes] == ["bandwidth"]
    assert "2.10 TB/s -> 1.05 TB/s" in change.causes[0].text


def test_a_collective_waits_for_the_slowest_rank(file):
    name = "ranks/ddp/rank0"
    found = changes(file(name), file(name, slow("nccl", 9)))
    assert {cause.id for change in found for cause in change.causes} == {"waiting"}


def test_a_flag_that_switched_a_backend_off_is_named(file):
    after = {"flags": {**FLAGS, "sdp_flash": "False"}}
    found = changes(file("seeds/sdpa_flash", own={"flags": FLAGS}), file("seeds/sdpa_math", own=after))
    said = {cause.id: cause.text for change in found for cause in change.causes}
    assert said["setting"] == "sdp_flash is False, it was True"


def test_tf32_explains_another_matrix_kernel(file):
    def edit(events):
        for event in events:
            if event.get("cat") == "kernel" and event["name"].startswith("nvjet"):
                event["name"] = "ampere_sgemm_32x128_tn"

    name = "ops/linear_eager"
    on, off = ({"flags": {**FLAGS, "matmul_allow_tf32": flag}} for flag in ("True", "False"))
    found = changes(file(name, own=on), file(name, edit, own=off))
    kernels = [change for change in found if change.kind == "kernel"]
    assert kernels
    said = {cause.id: cause.text for cause in kernels[0].causes}
    assert "on tensor cores -> cublas gemm fp32 on CUDA cores" in said["kernel"]
    assert said["setting"] == "matmul_allow_tf32 is False, it was True"


def test_alike_slower_kernels_are_the_clock(file):
    def edit(events):
        for event in events:
            if event.get("cat") == "kernel":
                event["dur"] *= 1.12

    found = diff(file("models/llama_sdpa_prefill"), file("models/llama_sdpa_prefill", edit))
    assert any("slower by about 12% each: clocks, power or temperature" in note for note in found.notes)
    once = diff(file("models/llama_sdpa_prefill"), file("models/llama_sdpa_prefill", slow("softmax")))
    assert not any("clocks" in note for note in once.notes)


def test_the_source_line_is_told_where_there_are_stacks(changed):
    found = changed("h200/faults/clean", "h200/faults/sync_item")
    said = [cause.text for scope in found.scopes for change in scope.changes for cause in change.causes]
    assert any(text.startswith("at ") and ": " in text for text in said)


def test_what_runs_less_often_says_on_which_inputs(changed):
    found = changed("h200/models/llama_eager_prefill", "h200/models/llama_sdpa_prefill")
    add = next(c for s in found.scopes for c in s.changes if c.kind == "fewer" and c.at == ("aten::add",))
    said = {cause.id: cause.text for cause in add.causes}
    assert said["inputs"] == "no longer on (4 x 16 x 1024 x 1024 bf16, 4 x 1 x 1024 x 1024 bf16)"


def test_a_finding_about_the_largest_part_of_a_change_is_quoted(changed):
    found = changed("h200/ops/matmul_add_4096", "h200/ops/matmul_add_4096_compiled")
    copies = next(
        change
        for scope in found.scopes
        for change in scope.changes
        if change.kind == "appeared" and change.at == ("aten::addmm",)
    )
    assert "memcpy" in {use.kind for use in copies.after}
    new = {finding.id for finding in found.new if finding.severity == "warning"}
    assert {cause.id for cause in copies.causes} & new


def test_what_autotuning_tries_is_not_what_ops_were_fused_into(changed):
    found = changed("h200/situations/gpt_varying_lengths_cudnn", "h200/situations/gpt_recompiles")
    fused = [change for scope in found.scopes for change in scope.changes if change.kind == "fused"]
    assert fused
    assert not [use for change in fused for use in change.after if "CachingAutotuner" in " ".join(use.path)]


def test_what_appears_with_other_inputs_of_the_same_op_says_so(changed):
    found = changed("h200/faults/clean", "h200/faults/tiny_batch")
    reduce = next(
        change
        for scope in found.scopes
        for change in scope.changes
        if change.kind == "appeared" and change.at[-1] == "aten::addmm"
    )
    assert "splitK" in reduce.after[0].name
    said = {cause.id: cause.text for cause in reduce.causes}
    assert "2 x 4096 bf16" in said["inputs"]
    assert "512 x 4096 bf16" in said["inputs"]


def test_other_ops_are_not_another_kernel_for_the_same_op(changed):
    found = changed("h200/faults/opt_forloop", "h200/faults/opt_fused")
    (change,) = next(scope.changes for scope in found.scopes if scope.changes)
    assert "kernel" not in {cause.id for cause in change.causes}


def test_inputs_are_told_before_what_follows_from_them(changed):
    found = changed("h200/ops/naive_fp32", "h200/ops/naive_compiled")
    product = found.scopes[0].changes[0]
    ids = [cause.id for cause in product.causes]
    assert ids.index("inputs") < ids.index("kernel") < ids.index("fp32-matmul")


def test_attention_of_unknown_ops_is_no_other_backend(changed):
    found = changed("h200/models/llama_sdpa_generate", "h200/situations/decode_cuda_graph")
    said = [cause.text for scope in found.scopes for change in scope.changes for cause in change.causes]
    assert not [text for text in said if "unknown" in text and "SDPA" in text]


def test_a_forward_is_not_merged_into_a_kernel_of_the_backward(changed):
    found = changed("h200_by_hand/gpt2_eager_train", "h200_by_hand/compiled_train")
    fused = [change for scope in found.scopes for change in scope.changes if change.kind == "fused"]
    assert len(fused) > 2
    for change in fused:
        backward = {any("Backward" in op for op in use.path) for use in (*change.before, *change.after)}
        assert len(backward) == 1, [use.path for use in change.before]
    said = [cause.text for change in fused for cause in change.causes if cause.id == "fused"]
    assert not [text for text in said if "autograd::engine" in text]
