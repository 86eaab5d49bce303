"""Eager kernels in compiled code: recorded on purpose, counted over the raw JSON."""

import math
from pathlib import Path

import pytest

from tracehunch.checks import fusion_missed
from tracehunch.verdict import CannotTell, Finding

DATA = Path(__file__).parents[1] / "data" / "h200"
MISSED = "../h200_compiled/fusion_missed"
AOT_EAGER = "../h200_compiled/aot_eager"
LIMIT = "../h200_compiled/recompile_limit"


def findings(facts):
    return {one.scope: one for one in fusion_missed.check(facts) if isinstance(one, Finding)}


def kernels_us(document, scope, *words):
    """Durations by call of the kernels launched in a scope whose names have one of some words."""
    events = document["traceEvents"]
    launches = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    found = []
    for call in (e for e in events if e.get("name") == scope and e.get("cat") == "user_annotation"):
        mine = {
            e["args"]["correlation"] for e in launches if call["ts"] <= e["ts"] < call["ts"] + call["dur"]
        }
        kernels = [e for e in events if e.get("cat") == "kernel" and e["args"]["correlation"] in mine]
        found.append([e["dur"] for e in kernels if any(word in e["name"] for word in words)])
    return found


def test_ops_between_compiled_graphs_are_found(facts_of, raw):
    found = findings(facts_of(MISSED))["disabled"]
    eager = kernels_us(raw(MISSED), "disabled", "at::native")
    assert [len(call) for call in eager] == [8, 8, 8]
    assert (found.severity, found.confidence, found.per_call) == ("warning", "medium", 8)
    # generated kernels stand before and after them, which could do all of their work
    assert math.isclose(found.time_at_stake_us, sum(map(sum, eager)) / 3, rel_tol=1e-9)
    assert found.summary.startswith(
        "ordinary ops run between compiled graphs: 8 kernels a call of aten::mean"
    )
    assert "graph_breaks" in found.fix


def test_an_op_that_generated_code_calls_is_found(facts_of, raw):
    found = findings(facts_of(MISSED))["rotary"]
    (first, *_) = kernels_us(raw(MISSED), "rotary", "at::native")
    assert len(first) == 1
    assert (found.subject, found.per_call) == ("aten::mul", 1)
    assert "complex" in found.cause


def test_a_graph_break_without_kernels_of_its_own_is_no_finding(facts_of):
    assert set(findings(facts_of(MISSED))) == {"disabled", "rotary"}


def test_another_backend_generates_nothing(facts_of, raw):
    found = findings(facts_of(AOT_EAGER))
    assert set(found) == {"aot_eager"}
    runs = kernels_us(raw(AOT_EAGER), "aot_eager", "at::native")
    # of each run of three the longest stays
    assert math.isclose(
        found["aot_eager"].time_at_stake_us, sum(sum(r) - max(r) for r in runs) / 3, rel_tol=1e-9
    )
    assert "aot_eager" in found["aot_eager"].cause


def test_a_function_past_its_limit_of_versions_runs_as_it_is(facts_of, raw):
    (found,) = findings(facts_of(LIMIT)).values()
    runs = kernels_us(raw(LIMIT), "limited", "at::native")
    assert (found.scope, found.per_call) == ("limited", 6)
    assert math.isclose(found.time_at_stake_us, sum(sum(r) - max(r) for r in runs) / 3, rel_tol=1e-9)
    assert "recompile_limit" in found.cause


@pytest.mark.parametrize(
    "path", sorted(DATA.rglob("*.json.gz")), ids=lambda path: path.relative_to(DATA).as_posix()[:-8]
)
def test_no_other_trace_has_one(facts_of, path):
    """Compiled models among them, with products, attention and copies that stay kernels of a library."""
    facts = facts_of(path.relative_to(DATA).as_posix().removesuffix(".json.gz"))
    assert list(fusion_missed.check(facts)) == []


def test_eager_models_are_not_compiled(raw, facts_from):
    """Constructed: the trace past its limit without the look-ups is an ordinary eager program."""
    document = raw(LIMIT)
    document["traceEvents"] = [e for e in document["traceEvents"] if e["name"] != "TorchDynamo Cache Lookup"]
    assert list(fusion_missed.check(facts_from(document))) == []


def test_kernels_without_ops_cannot_be_told(raw, facts_from):
    """Constructed: the ops of compiled code were not recorded, as in the replay of a CUDA graph."""
    document = raw(MISSED)
    document["traceEvents"] = [e for e in document["traceEvents"] if not e["name"].startswith("aten::")]
    untold = [one for one in fusion_missed.check(facts_from(document)) if isinstance(one, CannotTell)]
    assert {(one.key, one.scope) for one in untold} == {
        ("fusion-missed", "disabled"),
        ("fusion-missed", "rotary"),
    }
