"""What ran against what was to be expected, over every recorded trace."""

from collections import Counter
from pathlib import Path

import pytest

from tracehunch.predict.traced import Asked, causes, explain, matters
from tracehunch.trace import read
from tracehunch.tree import link

DATA = Path(__file__).parents[2] / "data"
TRACES = sorted([*(DATA / "h200").rglob("*.json.gz"), *(DATA / "h200_plans").glob("*.gz")])
H200 = Asked(torch="2.11.0+cu130", cudnn=91900)

PINNED = {  # by the program that was recorded, as the names say
    "ops/fwdbwd_efficient": 3, "ops/fwdbwd_flash": 3, "ops/fwdbwd_math": 3, "ops/gqa_math": 3,
    "seeds/shapes_sdpa_efficient": 3, "seeds/shapes_sdpa_flash": 3, "seeds/shapes_sdpa_math": 3,
    "seeds/stack_sdpa_flash": 3, "h200_plans/plan_cost_varying_flash": 12,
}  # fmt: skip


def key_of(path):
    return f"{path.parent.name}/{path.name.removesuffix('.json.gz')}"


@pytest.fixture(scope="module")
def explained():
    return {key_of(path): explain(link(read(path)), H200) for path in TRACES}


def counted(explained, verdict):
    counts = {name: one.count(verdict) for name, one in explained.items()}
    return {name: n for name, n in counts.items() if n}


def test_every_call_with_shapes_ran_as_predicted_but_for_those_that_were_pinned(explained):
    assert counted(explained, "surprise") == PINNED
    assert counted(explained, "depends") == {}
    assert sum(counted(explained, "as predicted").values()) == 195
    seeds = {f"seeds/sdpa_{name}" for name in ("auto", "cudnn", "efficient", "flash", "math")}
    no_shapes = {"models/llama_sdpa_compiled", "models/llama_sdpa_generate"} | seeds
    assert set(counted(explained, "cannot tell")) == no_shapes


def test_the_pins_explain_the_surprises(explained):
    for name in PINNED:
        for group in explained[name].groups:
            found = [cause.id for cause in causes(group)]
            assert found[:2] == ["pinned", "switched off"]


def test_without_the_version_the_answer_is_the_same_unless_versions_differ(explained):
    dropout = DATA / "h200/ops/dropout_auto.json.gz"
    (group,) = explain(link(read(dropout))).groups
    assert (group.verdict, group.ran) == ("depends", "cudnn")
    assert {case.env.torch_name for case in group.fitting} == {"2.10", "2.11"}  # 0.1 is no multiple of 1/16
    assert group.shown.env.torch_name == "2.11"
    for path in TRACES:
        if path != dropout:
            known = [group.verdict for group in explained[key_of(path)].groups]
            assert Counter(group.verdict for group in explain(link(read(path))).groups) == Counter(known)


# What each call of h200_calls was made to do (torch 2.11, cuDNN 9.19 on an H200), by its annotation.
UNLIKE_CUDNN = {
    "mask_3d": "efficient", "mask_learnt": "efficient", "fp32": "efficient",
    "d100": "flash", "one_key": "flash",
    "mqa_implicit": "math", "gqa_fp32": "math", "gqa_wide": "math", "fp64": "math", "three_dims": "math",
    "strided_last": "math", "empty": "math",
    "pin_flash": "flash", "pin_math": "math", "pin_efficient": "efficient", "cudnn_off": "flash",
    "deterministic": "flash",
}  # fmt: skip
FORCED = {"pin_flash", "pin_math", "pin_efficient", "cudnn_off", "deterministic"}


@pytest.fixture(scope="module")
def calls():
    return explain(link(read(DATA / "h200_calls/sdpa_calls.json.gz")), H200)


def test_calls_of_all_kinds(calls):
    ran = {group.scope: group.ran for group in calls.groups}
    assert len(calls.groups) == 49
    assert {scope: backend for scope, backend in ran.items() if backend != "cudnn"} == UNLIKE_CUDNN
    assert {group.scope for group in calls.groups if group.verdict == "surprise"} == FORCED
    assert [group.scope for group in calls.groups if group.verdict == "depends"] == ["mask_learnt"]
    assert calls.count("as predicted") == 43


def test_what_forced_a_backend_is_among_the_causes(calls):
    found = {group.scope: {cause.id for cause in causes(group)} for group in calls.groups}
    assert all("pinned" in found[name] for name in FORCED)
    assert "switched off" in found["cudnn_off"]
    assert "deterministic" in found["deterministic"]
    assert "deterministic" not in found["pin_efficient"]  # flash would have run
    assert found["pin_math"] == {"pinned", "switched off"}


def test_a_learnt_mask_is_told_by_what_ran(calls):
    (group,) = [group for group in calls.groups if group.scope == "mask_learnt"]
    assert group.calls[0].recorded.open == ("mask gradient",)
    assert all(case.call.mask.requires_grad for case in group.fitting)


def test_surprises_come_first_then_the_costliest(calls):
    order = [group.verdict for group in calls.groups]
    assert order == sorted(order, key=["surprise", "depends", "as predicted"].index)
    times = [group.gpu_us for group in calls.groups if group.verdict == "surprise"]
    assert times == sorted(times, reverse=True)


def test_like_calls_are_one_group(tree_of):
    (group,) = explain(tree_of("h200/models/llama_sdpa_prefill")).groups
    assert (len(group.calls), group.scope, group.verdict) == (18, "model_fwd", "as predicted")
    varying = explain(tree_of("h200/situations/gpt_varying_lengths_cudnn")).groups
    assert sorted(len(group.calls) for group in varying) == [6] * 6


def test_calls_of_compiled_graphs_are_explained_and_those_traced_are_only_counted(tree_of):
    found = explain(tree_of("h200/situations/gpt_recompiles"))
    assert {group.calls[0].origin for group in found.groups} == {"compiled"}
    assert (found.count("as predicted"), found.traced) == (6, 18)


def test_without_shapes_it_cannot_tell(tree_of):
    (group,) = explain(tree_of("h200/seeds/sdpa_auto")).groups
    assert (group.verdict, group.ran, group.unknown) == ("cannot tell", "cudnn", "shapes were not recorded")
    assert group.shown is None


def test_a_version_without_rules_cannot_be_told(tree_of):
    (group,) = explain(tree_of("h200/ops/gqa_auto", torch_version="2.4.0")).groups
    assert group.verdict == "cannot tell"
    assert "2.4.0" in group.unknown


def test_flags_that_were_recorded_explain_what_ran(tree_of):
    said = {"flags": {"sdp_cudnn": "False", "sdp_efficient": "False", "sdp_math": "False"}}
    (group,) = explain(tree_of("h200/ops/fwdbwd_flash", tracehunch_environment=said)).groups
    assert group.verdict == "as predicted"


@pytest.mark.shared
def test_other_projects_traces(public_traces):
    """H100 with torch 2.6 and MI300X with 2.7, whose rules are known in part."""
    found = Counter()
    for path in sorted(public_traces.glob("tl_*.json.gz")):
        for group in explain(link(read(path))).groups:
            found[group.verdict, group.ran] += len(group.calls)
    assert found == {("as predicted", "flash"): 33}


def test_an_error_that_was_to_be_expected_is_no_surprise():
    odd = {group.scope: group for group in explain(link(read(DATA / "cpu/sdpa_odd.json.gz"))).groups}
    heads = odd["heads_do_not_fit"]
    assert (heads.verdict, heads.ran) == ("as predicted", "math")
    assert "must match the size of tensor b" in heads.shown.prediction.raises
    mask = odd["mask_and_causal_in_math"]
    assert (mask.verdict, mask.ran) == ("depends", "math")  # if the mask needs a gradient
    assert "Explicit attn_mask should not be set" in mask.shown.prediction.raises
    assert "meta" in {cause.id for cause in causes(odd["meta"])}
    assert odd["no_queries"].verdict == "as predicted"
    assert {odd[name].verdict for name in ("nested_jagged", "nested_strided")} == {"cannot tell"}


def test_an_error_that_did_not_come_is_one():
    group = explain(link(read(DATA / "cpu/sdpa_odd.json.gz"))).groups
    heads = next(one for one in group if one.scope == "heads_do_not_fit")
    assert heads.cases[0].gives("math", finished=False)
    assert not heads.cases[0].gives("math", finished=True)
    assert not heads.cases[0].gives("flash", finished=False)


def test_only_what_is_left_open_and_decides_matters():
    odd = {group.scope: group for group in explain(link(read(DATA / "cpu/sdpa_odd.json.gz"))).groups}
    mask = odd["mask_and_causal_in_math"]
    assert {name for name in mask.calls[0].recorded.open if matters(mask, name)} == {"mask gradient"}
