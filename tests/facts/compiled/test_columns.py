"""Regions, kernels, graph breaks and compilations against counts made in another way."""

import re
from collections import Counter

import pytest

COMPILED = [
    "h200/ops/geglu_compiled",
    "h200/ops/naive_compiled",
    "h200/ops/matmul_add_4096_compiled",
    "h200/ops/flex_causal",
    "h200/models/llama_sdpa_compiled",
    "h200/situations/gpt_recompiles",
    "h200_compiled/aot_eager",
    "h200_compiled/bias",
    "h200_compiled/compile_overhead",
    "h200_compiled/fusion_missed",
    "h200_compiled/recompile_once",
]


def value(facts, scope, key):
    fact = facts.scope(scope).facts.get(key)
    return None if fact is None else fact.value


def kernels_of_regions(events):
    """Region -> kernels whose launch lies in it, in no smaller one, and in no phase of the compiler."""
    regions = [event for event in events if event["name"].startswith("Torch-Compiled Region")]
    phases = [event for event in events if event["name"].endswith("(dynamo_timed)")]
    phases = [event for event in phases if event["name"].startswith("CachingAutotuner")]
    launches = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event["args"]
    }
    found = Counter()
    for event in events:
        launch = (
            launches.get(event.get("args", {}).get("correlation")) if event.get("cat") == "kernel" else None
        )
        if launch is None or any(holds(phase, launch) for phase in phases):
            continue
        around = [at for at, region in enumerate(regions) if holds(region, launch)]
        if around:
            found[min(around, key=lambda at: regions[at]["dur"])] += 1
    return found


def holds(outer, inner):
    same = outer["tid"] == inner["tid"] and outer["pid"] == inner["pid"]
    return same and outer["ts"] <= inner["ts"] < outer["ts"] + outer["dur"]


@pytest.mark.parametrize("name", COMPILED)
def test_kernels_of_the_region_that_launches_most(facts_of, events_of, name):
    assert value(facts_of(name), "whole", "compiled.kernels") == max(
        kernels_of_regions(events_of(name)).values()
    )


@pytest.mark.parametrize("name", [*COMPILED, "cpu_compiled/kernels", "cpu_compiled/stacks"])
def test_regions_of_a_trace(facts_of, events_of, name):
    counted = sum(event["name"].startswith("Torch-Compiled Region") for event in events_of(name))
    assert value(facts_of(name), "whole", "compiled") == counted


@pytest.mark.parametrize(
    ("name", "scope", "breaks"),
    [
        ("h200_compiled/fusion_missed", "broken", 1),
        ("h200_compiled/fusion_missed", "disabled", 1),
        ("h200_compiled/fusion_missed", "rotary", 0),
        ("h200/ops/geglu_compiled", "mlp_fwd", 0),
        ("h200/models/llama_sdpa_compiled", "model_fwd", 0),
        ("h200/situations/gpt_recompiles", "step", 0),
        ("cpu/compiled_sizes", "step", 0),
        ("cpu_compiled/kernels", "glu", 0),
        ("cpu_compiled/kernels", "broken", 2),
        ("cpu_compiled/kernels", "item", 1),
        ("cpu_compiled/plain", "broken", 2),
        ("cpu_compiled/plain", "loop", None),  # side by side: only stacks tell whose they are
        ("cpu_compiled/stacks", "loop", 2),
        ("cpu_compiled/stacks", "glu", 0),
        ("cpu_compiled/stacks", "tail", 1),
        ("cpu_compiled/cold", "tail", 1),  # by the compilation of the rest, in the first call
        ("cpu_compiled/cold", "glu", 0),
        ("h200_compiled/compile_overhead", "tiny", None),
        ("h200_compiled/recompile_limit", "limited", None),
        ("h200/ops/geglu_eager", "mlp_fwd", None),
    ],
)
def test_graph_breaks(facts_of, name, scope, breaks):
    assert value(facts_of(name), scope, "compiled.graph_breaks") == breaks


def test_nested_regions_are_the_breaks(events_of):
    regions = [e for e in events_of("cpu_compiled/kernels") if e["name"].startswith("Torch-Compiled Region")]
    inner = [one for one in regions if any(holds(other, one) for other in regions if other is not one)]
    assert len(inner) == 2 * (2 + 1)  # two calls of broken and of item


@pytest.mark.parametrize(
    ("name", "scope", "last", "again"),
    [
        ("h200/situations/gpt_recompiles", "step", 3, 3),
        ("h200_compiled/recompile_once", "forward", 1, 1),
        ("h200_compiled/recompile_once", "ProfilerStep", 1, 1),
        ("h200/ops/geglu_compiled", "mlp_fwd", 0, 0),
        ("cpu_compiled/cold", "glu", 3, 3),
        ("cpu/compiled_sizes", "step", 3, 3),
        ("h200/ops/geglu_compiled", "whole", None, None),
    ],
)
def test_the_last_call_that_compiled(facts_of, name, scope, last, again):
    facts = facts_of(name)
    assert value(facts, scope, "compiled.last_compile") == last
    assert value(facts, scope, "compiled.last_recompile") == again


def test_the_last_compilation_is_where_the_file_has_it(facts_of, events_of):
    events = events_of("cpu_compiled/cold")
    calls = sorted((e for e in events if e["name"] == "glu"), key=lambda e: e["ts"])
    ids = [e for e in events if re.match(r"dynamo_data: compile_id=\d+/\d+", e["name"])]
    compiled = [number for number, call in enumerate(calls, 1) if any(holds(call, one) for one in ids)]
    assert compiled == [1, 3]
    assert value(facts_of("cpu_compiled/cold"), "glu", "compiled.last_compile") == compiled[-1]
    fact = facts_of("cpu_compiled/cold").scope("glu").facts["compiled.last_compile"]
    starts = facts_of("cpu_compiled/cold").tree.trace.start_ns[list(fact.rows)]
    call = facts_of("cpu_compiled/cold").scope("glu").scope.calls[2]
    assert ((starts >= call.start_ns) & (starts < call.end_ns)).all()  # the evidence is that call's


def test_kernels_on_a_cpu_are_loops_and_library_calls_where_they_are_recorded(facts_of):
    facts = facts_of("cpu_compiled/kernels")
    assert value(facts, "glu", "compiled.kernels") == 1
    assert value(facts, "product", "compiled.kernels") == 2  # addmm, and a loop for gelu and mul
    assert value(facts, "broken", "compiled.kernels") == 1
    assert value(facts_of("cpu_compiled/plain"), "glu", "compiled.kernels") is None


def test_looked_up_and_nothing_compiled_is_no_region(facts_of):
    assert value(facts_of("h200_compiled/recompile_limit"), "limited", "compiled") == 0
    assert value(facts_of("h200/ops/geglu_eager"), "mlp_fwd", "compiled") is None


def region(name, start, length, **args):
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": start,
        "dur": length,
        "args": args,
    }


def test_copies_back_into_inputs_are_no_break_and_other_ops_beside_the_graph_are(facts_from):
    around = [region("Torch-Compiled Region: 0/0", 0, 100), region("## Call CompiledFxGraph f ##", 10, 20)]
    beside = region("aten::copy_", 40, 10)
    assert value(facts_from([*around, beside]), "whole", "compiled.graph_breaks") == 0
    beside = region("aten::sort", 40, 10)
    assert value(facts_from([*around, beside]), "whole", "compiled.graph_breaks") == 1
    without_graph = [around[0], beside]  # backend="aot_eager": its ops are the graph
    assert value(facts_from(without_graph), "whole", "compiled.graph_breaks") == 0


def test_old_files_without_ids_tell_compilations_and_not_which_are_repeated(facts_from):
    events = [
        region("_compile.<locals>.compile_inner (dynamo_timed)", 0, 50),
        region("dynamo", 100, 50),
        region("Torch-Compiled Region", 200, 10),
    ]
    facts = facts_from([*events, {**region("step", 0, 300), "cat": "user_annotation"}])
    assert value(facts, "step", "compiled.last_compile") == 1
    assert value(facts, "step", "compiled.recompiles") is None


def test_a_region_and_a_graph_are_scopes_of_their_own(facts_of):
    facts = facts_of("h200/ops/geglu_compiled")
    graph = next(
        one.scope.name for one in facts.scopes if one.scope.name.startswith("## Call CompiledFxGraph")
    )
    assert value(facts, graph, "compiled.kernels") == value(facts, graph, "kernels") == 4
    assert value(facts, "Torch-Compiled Region: 1/0", "compiled.kernels") == 4
    assert value(facts, "Torch-Compiled Region: 1/0", "compiled.graph_breaks") == 0
