"""Guards and wrappers of recorded compiled functions, counted over the raw JSON."""

import json
import math
import statistics
from pathlib import Path

import pytest

from tracehunch.checks import compile_overhead
from tracehunch.verdict import CannotTell, Finding

DATA = Path(__file__).parents[1] / "data" / "h200"
OVERHEAD = "../h200_compiled/compile_overhead"
ONCE = "../h200_compiled/recompile_once"
BIAS = "../h200_compiled/bias"


def findings(facts):
    return {one.scope: one for one in compile_overhead.check(facts) if isinstance(one, Finding)}


def by_call(document, scope):
    """Microseconds of guards and wrappers, and of kernels that were launched, in each call of a scope."""
    events = document["traceEvents"]
    launches = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    for call in (e for e in events if e.get("name") == scope and e.get("cat") == "user_annotation"):
        inside = [e for e in events if "ts" in e and call["ts"] <= e["ts"] < call["ts"] + call["dur"]]
        spent = sum(
            e["dur"] * (-1 if e["name"].startswith("## Call") else 1)
            for e in inside
            if e.get("cat") in ("cpu_op", "user_annotation")
            and e["name"].startswith(("TorchDynamo Cache", "Torch-Compiled", "## Call"))
        )
        mine = {e["args"]["correlation"] for e in launches if e in inside}
        kernels = [e for e in events if e.get("cat") == "kernel" and e["args"]["correlation"] in mine]
        yield spent, sum(e["dur"] for e in kernels)


def test_a_tiny_function_costs_more_than_it_does(facts_of, raw):
    found = findings(facts_of(OVERHEAD))
    assert set(found) == {"tiny"}
    assert (found["tiny"].severity, found["tiny"].per_call) == ("warning", 12)
    host, gpu = zip(*by_call(raw(OVERHEAD), "tiny"), strict=True)
    assert (
        f"take {statistics.median(host):.1f} us of host time, for {statistics.median(gpu):.2f} us of GPU work"
        in (found["tiny"].summary)
    )
    assert 0 < found["tiny"].time_at_stake_us <= statistics.median(host) + 1e-6
    assert found["tiny"].idle


def test_what_the_gpu_waits_for_is_at_stake(facts_of):
    """Each call is launched from an idle GPU: it waits for all of the guards and wrappers."""
    found = findings(facts_of(OVERHEAD))["tiny"]
    assert math.isclose(found.time_at_stake_us, 299.8, rel_tol=1e-3)


def test_twice_the_work_is_a_warning_and_less_a_note(facts_of):
    found = findings(facts_of(BIAS))
    assert {scope: one.severity for scope, one in found.items()} == {"linear": "note", "addend": "warning"}


def test_where_every_call_compiles_the_compilers_own_time_is_left_out(facts_of, raw):
    """Each step of this trace compiles a new version: 1.6 s, of which wrappers and guards are 3 ms."""
    found = findings(facts_of("situations/gpt_recompiles"))
    assert {scope: one.severity for scope, one in found.items()} == {"step": "note"}
    events = raw("situations/gpt_recompiles")["traceEvents"]
    region, call = (
        statistics.median(e["dur"] for e in events if e.get("ph") == "X" and e["name"].startswith(start))
        for start in ("Torch-Compiled Region: 0/", "## Call CompiledFxGraph")
    )
    told = float(found["step"].summary.split(" take ")[1].split(" ms")[0])
    assert 0 < told < 1.1 * (region - call) / 1e3
    assert "Every call compiles as well" in found["step"].cause


NOTED = {"ops/flex_causal", "situations/gpt_recompiles"}


@pytest.mark.parametrize(
    "path", sorted(DATA.rglob("*.json.gz")), ids=lambda path: path.relative_to(DATA).as_posix()[:-8]
)
def test_no_other_trace_has_a_warning(facts_of, path):
    name = path.relative_to(DATA).as_posix().removesuffix(".json.gz")
    found = findings(facts_of(name)).values()
    assert [one.severity for one in found] == (["note"] if name in NOTED else [])


def test_a_first_compilation_is_a_note(raw, facts_from):
    """Constructed: the recorded compilation is the first one of its function."""
    document = json.loads(json.dumps(raw(ONCE)).replace("compile_id=0/1", "compile_id=0/0"))
    found = findings(facts_from(document))
    assert {scope: one.severity for scope, one in found.items()} == {"forward": "note"}
    assert "for the first time" in found["forward"].summary
    (spent,) = [e["dur"] for e in document["traceEvents"] if e["name"] == "dynamo"]
    assert found["forward"].time_at_stake_us >= 0.9 * spent / 4


def test_without_gpu_work_nothing_can_be_held_against_it(raw, facts_from):
    """Constructed: only the host's part of the recorded trace, with its bars twenty times as long."""
    document = raw(OVERHEAD)
    document["traceEvents"] = [
        e for e in document["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation")
    ]
    for event in document["traceEvents"]:
        event["ts"], event["dur"] = event["ts"] * 20, event["dur"] * 20
    untold = [one for one in compile_overhead.check(facts_from(document)) if isinstance(one, CannotTell)]
    assert ("compile-overhead", "tiny") in {(one.key, one.scope) for one in untold}
