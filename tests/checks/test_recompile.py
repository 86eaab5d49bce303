"""Compilations in recorded traces; their times and trial runs are counted over the raw JSON."""

import gzip
import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tracehunch.checks import recompile
from tracehunch.checks._recompiled_shapes import compared
from tracehunch.facts import measure
from tracehunch.facts.compiler import is_autotuning
from tracehunch.trace import read
from tracehunch.tree import link
from tracehunch.verdict import CannotTell, Finding

DATA = Path(__file__).parents[1] / "data" / "h200"
GPT = "situations/gpt_recompiles"
ONCE = "../h200_compiled/recompile_once"


def findings(facts):
    return [one for one in recompile.check(facts) if isinstance(one, Finding)]


def untold(facts):
    return [one for one in recompile.check(facts) if isinstance(one, CannotTell)]


@pytest.fixture(scope="module")
def document(raw):
    return raw(GPT)


def phases(document):
    """Spans in which the compiler is at work, each once, in order of time."""
    spans = sorted(
        (e["ts"], e["ts"] + e["dur"])
        for e in document["traceEvents"]
        if e.get("ph") == "X" and (e["name"] == "dynamo" or e["name"].endswith("(dynamo_timed)"))
    )
    outer = []
    for start, end in spans:
        if not outer or start >= outer[-1][1]:
            outer.append((start, end))
    return outer


def test_each_step_compiles_again(facts_of, document):
    (found,) = findings(facts_of(GPT))
    assert (found.scope, found.severity, found.confidence) == ("step", "warning", "high")
    assert found.per_call == 1
    host_us = sum(end - start for start, end in phases(document)) / 3
    said = re.search(r"for ([\d.]+) s of host time a call", found.summary)
    assert math.isclose(float(said[1]) * 1e6, host_us, rel_tol=1e-3)
    assert "3 of 3 calls" in found.summary
    assert "0/5, 0/6, 0/7" in found.summary
    # the GPU idles but for the trial runs, of some milliseconds
    assert host_us * 0.98 <= found.time_at_stake_us <= host_us
    assert [document["traceEvents"][position]["name"] for position in found.evidence] == ["dynamo"] * 3


def test_it_says_which_dimension_differs(facts_of):
    (found,) = findings(facts_of(GPT))
    assert (
        "dimension 1 of input 0 of triton_per_fused_native_layer_norm_0 (2 x 112 x 768): 112, 120, 128"
        in found.cause
    )
    assert "mark_dynamic" in found.fix
    change = compared(facts_of(GPT).tree, 0, []).change
    assert (change.dimension, change.values) == (1, (112, 120, 128))


def test_trial_runs_are_told_from_the_models_work(facts_of, document):
    events = document["traceEvents"]
    launches = {
        e["args"]["correlation"]: e["ts"]
        for e in events
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})
    }
    spans = phases(document)
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    launched = Counter(
        any(start <= launches[e["args"]["correlation"]] < end for start, end in spans)
        for e in work
        if e["args"]["correlation"] in launches
    )
    tree = facts_of(GPT).tree
    tuning = is_autotuning(tree, tree.trace.gpu.row.astype(np.int64))
    assert int(np.count_nonzero(tuning)) == launched[True]
    (found,) = findings(facts_of(GPT))
    assert f"{launched[True] // 3:,} of {sum(launched.values()) // 3:,} GPU activities a call" in found.cause
    assert facts_of(GPT).scope("step").value("compiled.autotuning") == launched[True] // 3


def test_on_a_cpu_sizes_are_those_that_the_compiler_traced(cpu):
    """There a region runs one kernel in C++, with no ops in it; the compiler's ops have sizes."""
    (found,) = findings(measure(link(read(cpu / "compiled_sizes.json.gz"))))
    assert (found.scope, found.severity) == ("step", "warning")
    assert "dimension 0 of input 0" in found.cause
    assert "88, 96, 104" in found.cause
    assert "GPU" not in found.cause
    document = json.loads(gzip.decompress((cpu / "compiled_sizes.json.gz").read_bytes()))
    spent = sum(end - start for start, end in phases(document)) / 3
    assert math.isclose(found.time_at_stake_us, spent, rel_tol=1e-6)


def test_one_more_version_in_the_first_call_is_a_note(facts_of):
    (found,) = findings(facts_of(ONCE))
    assert (found.scope, found.severity) == ("forward", "note")
    assert "1 of 4 calls" in found.summary
    assert "not in the trace" in found.cause


@pytest.mark.parametrize(
    "path", sorted(DATA.rglob("*.json.gz")), ids=lambda path: path.relative_to(DATA).as_posix()[:-8]
)
def test_no_other_trace_has_one(facts_of, path):
    """Compiled models among them, whose every call finds its code."""
    name = path.relative_to(DATA).as_posix().removesuffix(".json.gz")
    assert [one.severity for one in findings(facts_of(name))] == (["warning"] if name == GPT else [])
    assert not untold(facts_of(name))


TRIALS = "CachingAutotuner.benchmark_all_configs (dynamo_timed)"


@pytest.fixture(scope="module")
def small(document):
    """Constructed: the recorded trace without the trial runs, and the compiler's inner phases."""
    events = document["traceEvents"]
    trials = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["name"] == TRIALS]
    inner = [e for e in events if e["name"].startswith("compile_attempt_0 (")]
    spans = trials + [(e["ts"], e["ts"] + e["dur"]) for e in inner]
    launched = {
        e["args"]["correlation"]
        for e in events
        if e.get("cat") in ("cuda_runtime", "cuda_driver")
        and not any(start < e["ts"] < end for start, end in spans)
    }
    kept = [
        e
        for e in events
        if e.get("args", {}).get("correlation", -1) in launched
        or ("correlation" not in e.get("args", {}) and not any(s < e.get("ts", 0) < t for s, t in spans))
    ]
    return json.dumps(document | {"traceEvents": [e for e in kept if e.get("ph") == "X"]})


def with_ids(document, numbers):
    """Give the three compilations other ids, ``code/version``."""
    for event in document["traceEvents"]:
        for old, new in numbers.items():
            event["name"] = event["name"].replace(f"compile_id={old}", f"compile_id={new}")
            event["name"] = event["name"].replace(f"Region: {old}", f"Region: {new}")
    return document


def test_a_function_made_anew_in_each_call_is_compiled_again(small, facts_from):
    """Constructed: each recorded compilation is the first one of another function."""
    (found,) = findings(facts_from(with_ids(json.loads(small), {"0/5": "5/0", "0/6": "6/0", "0/7": "7/0"})))
    assert found.severity == "warning"
    assert "2 of 3 calls" in found.summary
    assert "outside the loop" in found.fix


def test_a_first_compilation_is_no_recompilation(small, facts_from):
    """Constructed: the second and third compilation taken away, and the first of its kind."""
    document = with_ids(json.loads(small), {"0/5": "0/0"})
    starts = [e["ts"] for e in document["traceEvents"] if e["name"] == "dynamo"]
    later = sorted(starts)[1]
    document["traceEvents"] = [
        e
        for e in document["traceEvents"]
        if e["ts"] < later or e["name"] == "step" or e["name"].startswith("ProfilerStep")
    ]
    assert findings(facts_from(document)) == []


def test_same_shapes_point_to_another_guard(small, facts_from):
    """Constructed: all versions ran with the same sizes."""
    document = json.loads(small)
    for event in document["traceEvents"]:
        dims = event.get("args", {}).get("Input Dims")
        if dims:
            event["args"]["Input Dims"] = [[2, 2] if size else size for size in dims]
    (found,) = findings(facts_from(document))
    assert "rather a Python value" in found.cause
    assert "TORCH_LOGS=recompiles" in found.fix


def test_versions_without_compilations_cannot_be_told(small, facts_from):
    """Constructed: the annotations of the compiler taken away, as older releases do not write them."""
    document = json.loads(small)
    document["traceEvents"] = [
        e
        for e in document["traceEvents"]
        if not e["name"].endswith("(dynamo_timed)")
        and "compile_id=" not in e["name"]
        and e["name"] not in ("dynamo", "entire_frame_compile")
    ]
    facts = facts_from(document)
    assert findings(facts) == []
    assert [(one.key, one.scope) for one in untold(facts)] == [("recompile", "step")]
