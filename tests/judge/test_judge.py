"""The judge on recorded traces: three outcomes, the textbook and the expert, what explains a surprise."""

from dataclasses import replace

import pytest

from tracehunch import api
from tracehunch.checks import hidden_copy
from tracehunch.facts.vocabulary import KEYS
from tracehunch.guess import Guess
from tracehunch.guess.claims import claims_from_mapping
from tracehunch.judge import judge
from tracehunch.judge.explain import EXPERT, LESS, MORE, OTHER
from tracehunch.verdict import Checked, Verdict


@pytest.fixture(scope="module")
def looks(h200):
    """Looks at recorded traces by name, each taken once."""
    seen = {}

    def look(name):
        if name not in seen:
            seen[name] = api.look(h200 / f"{name}.json.gz")
        return seen[name]

    return look


def judged(look, scope, claims, who="user", *, checked=None):
    """The verdict on some claims, and on claims by others that were made before."""
    made = claims_from_mapping(scope, claims, who) if isinstance(claims, dict) else claims
    return judge([Guess(made)], look.facts, look.checked if checked is None else checked)


def copies_alone(look):
    """What the check for copies found, as if no other had claimed their time."""
    return Checked(tuple(hidden_copy.check(look.facts)))


def outcome(verdict, key):
    """What became of the claims about a key: a list of "held", "surprise", "cannot tell"."""
    return (
        ["held"] * sum(one.claim.key == key for one in verdict.held)
        + ["surprise"] * sum(one.claim.key == key for one in verdict.surprises)
        + ["cannot tell"] * sum(one.key == key for one in verdict.cannot_tell)
    )


def test_each_claim_has_one_of_three_outcomes(looks):
    claims = {
        "kernels": 5,
        "copies": 0,
        "sdpa.backend": "none",
        "allocated_bytes": "< 1MB",
        "gpu_time": "< 1.2ms",
    }
    verdict = judged(looks("seeds/naive"), "attn_fwd", claims)
    assert {key: outcome(verdict, key) for key in claims} == {
        "kernels": ["held"],
        "copies": ["surprise"],
        "sdpa.backend": ["held"],
        "allocated_bytes": ["cannot tell"],
        "gpu_time": ["held"],
    }
    (unknown,) = verdict.cannot_tell
    assert (unknown.reason, unknown.record_with) == ("memory was not recorded", "profile_memory=True")


def test_a_surprise_names_value_cause_time_and_evidence(looks):
    look = looks("seeds/naive")
    (found,) = judged(look, "attn_fwd", {"copies": 0}, checked=copies_alone(look)).surprises
    trace = look.facts.tree.trace
    assert (found.seen, found.severity, found.explained_by) == (1, "error", ("hidden-copy",))
    assert found.time_at_stake_us == pytest.approx(127.57, abs=0.01)
    assert [trace.names[trace.name[list(trace.event).index(event)]] for event in found.evidence] == [
        "Memcpy DtoD (Device -> Device)"
    ]


def test_a_broken_textbook_claim_whose_expert_claim_holds_is_explained(looks):
    claims = claims_from_mapping("attn_fwd", {"copies": 0, "memsets": 0}, "textbook")
    claims += claims_from_mapping("attn_fwd", {"copies": 1, "memsets": 1}, "expert")
    verdict = judged(looks("seeds/naive"), "attn_fwd", claims)
    explained = {one.claim.key: (one.claim.who, one.explained_by, one.severity) for one in verdict.surprises}
    assert explained == {
        "copies": ("textbook", ("hidden-copy",), "note"),
        "memsets": ("textbook", (EXPERT,), "note"),
    }
    assert {held.claim.who for held in verdict.held} == {"expert"}


def test_a_broken_expert_claim_is_unexplained_whatever_the_textbook_says(looks):
    claims = claims_from_mapping("attn_fwd", {"copies": 0, "kernels": 5}, "textbook")
    claims += claims_from_mapping("attn_fwd", {"copies": 2, "kernels": 6}, "expert")
    verdict = judged(looks("seeds/naive"), "attn_fwd", claims)
    assert {(one.claim.who, one.claim.key): one.explained_by for one in verdict.surprises} == {
        ("textbook", "copies"): (),
        ("expert", "copies"): (),
        ("expert", "kernels"): (),
    }
    assert {one.severity for one in verdict.surprises} == {"warning"}
    assert [(held.claim.who, held.claim.key) for held in verdict.held] == [("textbook", "kernels")]


def test_the_expert_of_another_scope_does_not_explain(looks):
    claims = claims_from_mapping("attn_fwd", {"memsets": 0}, "textbook")
    claims += claims_from_mapping("ProfilerStep", {"memsets": 1}, "expert")
    (found,) = judged(looks("seeds/naive"), "attn_fwd", claims).surprises
    assert found.explained_by == ()


def test_without_an_expert_the_findings_explain(looks):
    look = looks("seeds/sdpa_math")
    claims = {"kernels": 1, "sdpa.backend": "flash", "tensor_cores": "used"}
    explained = {one.claim.key: set(one.explained_by) for one in judged(look, "sdpa_fwd", claims).surprises}
    assert {"sdpa-math-fallback", "mask-rebuilt", "safe-softmax"} <= explained["kernels"]
    assert explained["sdpa.backend"] == {"sdpa-math-fallback"}
    assert "tensor-cores-idle" in explained["tensor_cores"]
    unexplained = judged(look, "sdpa_fwd", claims, checked=Checked()).surprises
    assert {one.explained_by for one in unexplained} == {()}


def test_a_finding_elsewhere_explains_nothing(looks):
    look = looks("seeds/naive")
    moved = Checked(tuple(replace(one, scope="elsewhere", evidence=()) for one in look.checked.findings))
    (found,) = judged(look, "attn_fwd", {"copies": 0}, checked=moved).surprises
    assert found.explained_by == ()
    assert found.time_at_stake_us == pytest.approx(126.911)  # the copy of the first call


def test_a_memcpy_is_no_cause_of_more_kernels(looks):
    look = looks("seeds/naive")
    (found,) = judged(look, "attn_fwd", {"kernels": 4}, checked=copies_alone(look)).surprises
    assert found.explained_by == ()


def test_a_finding_inside_explains_a_scope_around_and_an_op_below(looks):
    look = looks("seeds/naive")
    step, whole, op = (
        judged(look, scope, {"copies": 0}, checked=copies_alone(look)).surprises[0]
        for scope in ("step", "whole", "aten::masked_fill")
    )
    assert {one.explained_by for one in (step, whole, op)} == {("hidden-copy",)}
    assert whole.time_at_stake_us == pytest.approx(3 * step.time_at_stake_us)
    assert op.time_at_stake_us == pytest.approx(step.time_at_stake_us)


def test_a_small_finding_does_not_explain_a_large_excess_of_time(looks):
    look = looks("seeds/naive")
    copies = copies_alone(look)
    (found,) = judged(look, "attn_fwd", {"gpu_time": "< 100us"}, checked=copies).surprises
    assert found.explained_by == ()
    assert found.time_at_stake_us == pytest.approx(963.5, abs=1)
    (found,) = judged(look, "attn_fwd", {"gpu_time": "< 940us"}, checked=copies).surprises
    assert found.explained_by == ("hidden-copy",)
    (found,) = judged(look, "attn_fwd", {"gpu_time": "< 200us"}).surprises
    assert "unfused-attention" in found.explained_by


def test_less_than_claimed_is_a_warning_without_cause(looks):
    (found,) = judged(looks("seeds/naive_inplace"), "attn_fwd", {"copies": 1}).surprises
    assert (found.severity, found.explained_by, found.time_at_stake_us) == ("warning", (), 0.0)
    assert len(found.evidence) == 3  # the calls of the scope, in none of which there is a copy


def test_confidence_lowers_severity(looks):
    levels = [
        judged(looks("seeds/naive"), "attn_fwd", {"copies": 0, "confidence": confidence})
        .surprises[0]
        .severity
        for confidence in ("high", "medium", "low")
    ]
    assert levels == ["error", "warning", "note"]


def test_surprises_are_ranked_by_time_at_stake(looks):
    claims = {"sdpa.backend": "flash", "gpu_time": "< 1us", "memsets": 1, "kernels": 1}
    stakes = [one.time_at_stake_us for one in judged(looks("seeds/sdpa_math"), "sdpa_fwd", claims).surprises]
    assert stakes == sorted(stakes, reverse=True)
    assert stakes[-1] == 0


@pytest.mark.parametrize(
    ("claimed", "held"),
    [
        (["aten::masked_fill"], True),
        (["masked_fill", "softmax", "aten::matmul"], True),
        (["aten::_softmax"], False),
        (["softmax", "masked_fill"], False),
        (["aten::bmm"], False),
        (["aten::masked_fill", "aten::nothing"], False),
    ],
)
def test_what_leads_is_summed_under_the_names_that_people_use(looks, claimed, held):
    verdict = judged(looks("seeds/naive"), "attn_fwd", {"dominant": claimed})
    assert outcome(verdict, "dominant") == ["held" if held else "surprise"]


@pytest.mark.parametrize(
    ("claimed", "held"),
    [
        (["aten::scaled_dot_product_attention"], True),
        (["aten::copy_", "aten::bmm", "aten::mul"], True),  # the order of the profiler's own self CPU times
        (["aten::bmm"], False),
        (["aten::copy_", "aten::mul"], False),
    ],
)
def test_ops_inside_those_that_were_called_lead_as_tables_have_it(looks, claimed, held):
    verdict = judged(looks("../cpu/sdpa_math"), "sdpa_fwd", {"dominant": claimed})
    assert outcome(verdict, "dominant") == ["held" if held else "surprise"]
    for found in verdict.surprises:
        assert found.seen[:3] == ("aten::copy_", "aten::bmm", "aten::mul")


def test_a_misspelt_op_is_a_surprise_that_says_so(looks):
    (found,) = judged(looks("seeds/naive"), "attn_fwd", {"dominant": ["aten::softmx"]}).surprises
    assert found.slip.endswith("did you mean aten::softmax?")


@pytest.mark.parametrize(
    "op", ["aten::_scaled_dot_product_flash_attention", "prelu", "mylib::softmx", "aten::nothing"]
)
def test_an_op_that_there_is_or_may_be_is_no_slip(looks, op):
    (found,) = judged(looks("seeds/naive"), "attn_fwd", {"dominant": [op]}).surprises
    assert found.slip == ""


def test_a_called_op_leads_with_all_that_it_calls(looks):
    claims = {"dominant": ["aten::scaled_dot_product_attention"]}
    assert outcome(judged(looks("seeds/sdpa_math"), "sdpa_fwd", claims), "dominant") == ["held"]


SCOPES = [
    ("attn_fwd", "attn_fwd"),
    ("step", "ProfilerStep"),
    ("ProfilerStep", "ProfilerStep"),
    ("aten::masked_fill", "aten::masked_fill"),
    ("masked_fill", "aten::masked_fill"),
    ("*", "attn_fwd"),
]


@pytest.mark.parametrize(("written", "meant"), SCOPES)
def test_scopes_are_found_by_the_names_people_use(looks, written, meant):
    verdict = judged(looks("seeds/naive"), written, {"copies": 1})
    assert [held.claim.scope for held in verdict.held] == [meant]


def test_an_op_scope_counts_what_its_calls_own(looks):
    claims = {"kernels": 20, "copies": 0, "sdpa.backend": "math"}
    verdict = judged(looks("seeds/sdpa_math"), "aten::scaled_dot_product_attention", claims)
    assert len(verdict.held) == 3


def test_a_module_is_found_by_its_path_or_the_end_of_it(looks):
    look = looks("models/llama_sdpa_train_stack")
    path = next(
        one.scope.name for one in look.facts.scopes if one.scope.kind == "module" and "/" in one.scope.name
    )
    for written in (path, path.rpartition("/")[2]):
        verdict = judged(look, written, {"syncs": 0})
        assert path in {one.claim.scope for one in verdict.held}
        assert not verdict.cannot_tell


def test_a_star_is_every_annotation(looks):
    verdict = judged(looks("models/llama_sdpa_train"), "*", {"syncs": 0})
    assert {one.claim.scope for one in verdict.held} == {"train_step", "forward", "backward", "optimizer"}


@pytest.mark.parametrize(
    ("trace", "scope", "reason"),
    [
        ("seeds/naive", "attn_fw", ": did you mean attn_fwd?"),
        ("seeds/naive", "aten::mask_fill", ": did you mean aten::masked_fill"),
        ("seeds/naive", "decoder", "; it has attn_fwd"),
    ],
)
def test_an_unknown_scope_cannot_be_told_and_near_ones_are_named(looks, trace, scope, reason):
    verdict = judged(looks(trace), scope, {"kernels": 5, "copies": 0})
    assert [(one.key, one.scope) for one in verdict.cannot_tell] == [("kernels", scope), ("copies", scope)]
    assert reason in verdict.cannot_tell[0].reason
    assert not verdict.held
    assert not verdict.surprises


def test_a_claim_of_the_wrong_kind_cannot_be_told(looks):
    claims = [replace(one, expected="five") for one in claims_from_mapping("attn_fwd", {"kernels": 5})]
    assert outcome(judged(looks("seeds/naive"), "", tuple(claims)), "kernels") == ["cannot tell"]


def test_no_guess_is_no_verdict(looks):
    look = looks("seeds/naive")
    assert judge([], look.facts, look.checked) == look.verdict == Verdict()


def test_the_map_of_causes_knows_only_keys_of_the_vocabulary():
    assert {*MORE, *OTHER, *LESS} <= set(KEYS)


def test_names_like_those_of_modules_need_stacks(looks):
    for written in ("Linear_4", "Block_1/Linear_4", "layers.0/attn"):
        (unknown,) = judged(looks("seeds/naive"), written, {"kernels": 5}).cannot_tell
        assert "modules were not recorded" in unknown.reason
        assert unknown.record_with == "with_stack=True"
    (unknown,) = judged(looks("models/llama_sdpa_train_stack"), "Zzz_4", {"kernels": 5}).cannot_tell
    assert "modules" not in unknown.reason


def test_a_slip_of_the_pen_is_not_answered_with_how_to_record_it(looks):
    (unknown,) = judged(looks("seeds/naive"), "atn_fwd", {"kernels": 5}).cannot_tell
    assert (unknown.reason, unknown.record_with) == (
        "the trace has no scope 'atn_fwd': did you mean attn_fwd?",
        "",
    )


WORK = ("flops", "hbm_bytes", "achieved_flops", "achieved_bandwidth")


@pytest.mark.parametrize("key", WORK)
def test_work_without_shapes_says_how_to_record_them(looks, key):
    (unknown,) = judged(looks("seeds/naive"), "attn_fwd", {key: "> 5"}).cannot_tell
    assert (unknown.reason, unknown.record_with) == (
        "tensor shapes were not recorded",
        "record_shapes=True",
    )
    told = judged(looks("seeds/shapes_naive"), "attn_fwd", {key: "> 5"})
    assert [held.claim.key for held in told.held] == [key]


@pytest.mark.parametrize(
    ("name", "scope", "key", "reason"),
    [
        ("seeds/shapes_naive", "whole", "flops", "kernels launched outside the recorded window"),
        ("situations/decode_cuda_graph", "decode", "flops", "CUDA graph's replay"),
        ("models/llama_sdpa_train", "optimizer", "hbm_bytes", "aten::_foreach_"),
        ("ops/flex_causal", "whole", "flops", "a generated kernel reads and writes"),
        ("ranks/ddp/rank0", "whole", "achieved_bandwidth", "record_param_comms computes and moves is not"),
    ],
)
def test_work_that_is_not_known_says_of_what(looks, name, scope, key, reason):
    (unknown,) = judged(looks(name), scope, {key: "> 5"}).cannot_tell
    assert reason in unknown.reason
    assert unknown.reason.endswith("% of the GPU time)")
    assert unknown.record_with == ""


def test_every_key_is_measured_somewhere(looks):
    names = ("seeds/shapes_naive", "situations/gpt_recompiles", "situations/decode_cuda_graph")
    seen = {key for name in names for scope in looks(name).facts.scopes for key in scope.facts}
    assert set(KEYS) - seen <= {"allocated_bytes", "copies.ptop"}


def test_what_leads_is_not_explained_by_just_any_finding(looks):
    (found,) = judged(looks("seeds/naive"), "attn_fwd", {"dominant": ["aten::nothing"]}).surprises
    assert found.explained_by == ()
