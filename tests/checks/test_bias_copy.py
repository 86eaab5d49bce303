"""Copies inside ``addmm`` of compiled code: found in recorded traces, counted over their raw JSON."""

import math
from pathlib import Path

import pytest

from tracehunch.checks import bias_copy
from tracehunch.verdict import CannotTell, Finding

DATA = Path(__file__).parents[1] / "data" / "h200"
BIAS = "../h200_compiled/bias"
COMPILED = "ops/matmul_add_4096_compiled"


def findings(facts):
    return [one for one in bias_copy.check(facts) if isinstance(one, Finding)]


def copies_us(document):
    return [e["dur"] for e in document["traceEvents"] if e["name"].startswith("Memcpy DtoD")]


def test_the_copy_before_the_product_is_found(facts_of, raw):
    (found,) = findings(facts_of(COMPILED))
    assert (found.scope, found.severity, found.confidence) == ("matmul_add", "warning", "high")
    assert (found.subject, found.per_call) == ("aten::addmm", 1)
    assert math.isclose(found.time_at_stake_us, sum(copies_us(raw(COMPILED))) / 3, rel_tol=1e-9)
    cited = [raw(COMPILED)["traceEvents"][position]["name"] for position in found.evidence]
    assert sorted(cited) == ["Memcpy DtoD (Device -> Device)"] * 3 + ["aten::addmm"] * 3


def test_with_shapes_it_says_what_is_added_and_no_bias_that_the_kernel_adds(facts_of):
    """Linear layers, compiled or not, have a GEMM that adds the bias; eager addmm is the program's own."""
    (found,) = findings(facts_of(BIAS))
    assert found.scope == "addend"
    assert "copies what it adds (4,096 x 1,024) into its output" in found.summary
    assert "max-autotune-no-cudagraphs" in found.fix


@pytest.mark.parametrize(
    "path", sorted(DATA.rglob("*.json.gz")), ids=lambda path: path.relative_to(DATA).as_posix()[:-8]
)
def test_no_other_trace_has_one(facts_of, path):
    name = path.relative_to(DATA).as_posix().removesuffix(".json.gz")
    assert [one.severity for one in findings(facts_of(name))] == (["warning"] if name == COMPILED else [])


def test_a_bias_that_is_copied_is_called_one(raw, facts_from):
    """Constructed: the recorded addend has one dimension."""
    document = raw(BIAS)
    for event in document["traceEvents"]:
        dims = event.get("args", {}).get("Input Dims")
        if event["name"] == "aten::addmm" and dims[0] == [4096, 1024]:
            dims[0] = [1024]
    (found,) = findings(facts_from(document))
    assert "aten::addmm copies the bias (1,024) into its output" in found.summary
    assert "multiples of 8" in found.fix


def test_out_is_enough_where_the_trace_has_no_compiled_region(raw, facts_from):
    """Constructed: the annotations of compiled code taken away; ``out=`` is among the recorded inputs."""
    document = raw(BIAS)
    document["traceEvents"] = [
        e for e in document["traceEvents"] if "Compiled" not in e["name"] and "Dynamo" not in e["name"]
    ]
    assert [one.scope for one in findings(facts_from(document))] == ["addend"]


def test_a_replay_hides_what_made_the_copies(raw, facts_from):
    """Constructed: what one call launched, as if one replay of a CUDA graph had launched all of it."""
    document = raw(COMPILED)
    events = [e for e in document["traceEvents"] if e.get("cat") != "cpu_op"]
    launches = [
        e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and "Launch" in e["name"]
    ]
    correlations = {e["args"]["correlation"] for e in launches}
    for scope in (e for e in events if e.get("name") == "matmul_add" and e.get("cat") == "user_annotation"):
        start, end = scope["ts"], scope["ts"] + scope["dur"]
        mine = [e for e in launches if start <= e["ts"] < end]
        copying = [e for e in events if e["name"] == "cudaMemcpyAsync" and start <= e["ts"] < end]
        mine[0]["name"] = "cudaGraphLaunch"
        moved = {e["args"]["correlation"] for e in (*mine, *copying)} | (
            correlations & {e["args"]["correlation"] for e in mine}
        )
        for event in events:
            if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
                if event["args"].get("correlation") in moved:
                    event["args"]["correlation"] = mine[0]["args"]["correlation"]
                event["args"].pop("External id", None)
    document["traceEvents"] = events
    facts = facts_from(document)
    untold = [one for one in bias_copy.check(facts) if isinstance(one, CannotTell)]
    assert [(one.key, one.scope, one.record_with) for one in untold] == [
        ("bias-copy", "matmul_add", "a run without the CUDA graph")
    ]
    assert not findings(facts)
