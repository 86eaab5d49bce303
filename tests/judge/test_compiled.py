"""Claims about compiled code: held, surprises with the findings that explain them, what cannot be told."""

from pathlib import Path

import pytest

from tracehunch.guess import Guess
from tracehunch.guess.baseline import baseline
from tracehunch.guess.claims import claims_from_mapping
from tracehunch.guess.hunch import parse_hunch
from tracehunch.guess.write import write_hunch
from tracehunch.judge import examine
from tracehunch.trace import read

DATA = Path(__file__).parents[1] / "data"


def judged(name, scope, claims):
    return examine(read(DATA / f"{name}.json.gz"), (Guess(claims_from_mapping(scope, claims)),)).verdict


@pytest.mark.parametrize(
    ("name", "scope", "claims"),
    [
        (
            "h200/ops/geglu_compiled", "mlp_fwd",
            {"fused": ["gelu", "mul"], "compiled": 1, "compiled.kernels": 4, "compiled.graph_breaks": 0,
             "compiled.last_compile": 0, "compiled.last_recompile": "<= 2"},
        ),
        ("h200/ops/matmul_add_4096_compiled", "step", {"compiled.kernels": 1, "compiled.graph_breaks": 0}),
        ("h200/ops/flex_causal", "attn_fwd", {"fused": "flex_attention", "compiled.kernels": 1}),
        ("h200_compiled/recompile_once", "step", {"compiled.last_recompile": "<= 2", "compiled.kernels": 1}),
        ("cpu_compiled/stacks", "*", {"compiled.kernels": 1}),
    ],
)  # fmt: skip
def test_claims_that_hold(name, scope, claims):
    verdict = judged(name, scope, claims)
    assert not verdict.surprises
    assert not verdict.cannot_tell
    assert len(verdict.held) >= len(claims)


@pytest.mark.parametrize(
    ("name", "scope", "claim", "seen", "explained_by"),
    [
        ("h200/situations/gpt_recompiles", "step", {"compiled.last_recompile": "<= 2"}, 3, "recompile"),
        ("h200/situations/gpt_recompiles", "step", {"compiled.last_compile": "<= 2"}, 3, "recompile"),
        ("h200/situations/gpt_recompiles", "step", {"compiled.recompiles": 0}, 1, "recompile"),
        ("h200_compiled/recompile_once", "forward", {"compiled.recompiles": 0}, 1, "recompile"),
        ("h200_compiled/fusion_missed", "disabled", {"compiled.graph_breaks": 0}, 1, "fusion-missed"),
        ("h200_compiled/recompile_limit", "limited", {"compiled": 1}, 0, "fusion-missed"),
        (
            "h200_compiled/recompile_limit", "limited", {"fused": ["gelu", "mul"]},
            ("gelu: aten::gelu", "mul: aten::mul"), "fusion-missed",
        ),
        (
            "h200_compiled/fusion_missed", "rotary", {"fused": ["gelu", "mul"]},
            ("gelu: triton_poi_fused_gelu_view_view_as_complex_0", "mul: aten::mul"), "fusion-missed",
        ),
        ("cpu_compiled/cold", "glu", {"compiled.last_recompile": "<= 2"}, 3, "recompile"),
    ],
)  # fmt: skip
def test_broken_claims_are_explained_by_what_was_found(name, scope, claim, seen, explained_by):
    (found,) = judged(name, scope, claim).surprises
    assert found.seen == seen
    assert explained_by in found.explained_by
    assert found.severity == "error"
    assert found.evidence


@pytest.mark.parametrize(
    ("name", "scope", "claim", "reason", "record_with"),
    [
        ("cpu_compiled/plain", "glu", {"fused": ["gelu"]}, "were not recorded", "enable_kernel_profile"),
        ("cpu_compiled/plain", "glu", {"compiled.kernels": 1}, "were not recorded", "enable_kernel_profile"),
        ("cpu_compiled/plain", "loop", {"compiled.graph_breaks": 0}, "side by side", "with_stack=True"),
        ("h200/ops/geglu_eager", "mlp_fwd", {"compiled.graph_breaks": 0}, "no compiled region", ""),
        ("h200/ops/geglu_eager", "mlp_fwd", {"compiled": 1}, "as far as its version", ""),
        ("h200/ops/geglu_compiled", "whole", {"compiled.last_compile": 0}, "one call", "prof.step()"),
        ("h200/seeds/naive", "attn_fwd", {"compiled.last_recompile": 0}, "no compiled region", ""),
    ],
)
def test_what_cannot_be_told_says_what_to_record(name, scope, claim, reason, record_with):
    (unknown,) = judged(name, scope, claim).cannot_tell
    assert reason in unknown.reason
    assert record_with in unknown.record_with


@pytest.mark.parametrize("name", ["h200_compiled/fusion_missed", "cpu_compiled/kernels", "cpu_compiled/cold"])
def test_a_baseline_claims_what_was_merged_and_holds_on_its_own_trace(name):
    trace = read(DATA / f"{name}.json.gz")
    guess = parse_hunch(write_hunch(baseline(examine(trace).facts))).guess
    assert any(claim.relation == "merged" for claim in guess.claims)
    assert any(claim.key == "compiled.graph_breaks" for claim in guess.claims)
    verdict = examine(trace, (guess,)).verdict
    assert len(verdict.held) == len(guess.claims)


def test_a_baseline_of_merged_ops_breaks_where_they_are_not_merged():
    guess = baseline(examine(read(DATA / "h200/ops/geglu_compiled.json.gz")).facts)
    verdict = examine(read(DATA / "h200/ops/geglu_eager.json.gz"), (guess,)).verdict
    assert "fused" in {one.claim.key for one in verdict.surprises}
