"""The partition of idle time against counts over the raw JSON, made in other ways."""

from pathlib import Path

import numpy as np
import pytest

from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.checks._idle_blame import partition
from tracehunch.facts import measure
from tracehunch.trace import read
from tracehunch.tree import NONE, link

DATA = Path(__file__).parents[1] / "data" / "h200"
TRACES = sorted(
    path.relative_to(DATA).as_posix().removesuffix(".json.gz") for path in DATA.rglob("*.json.gz")
)
ON_GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
ON_HOST = {"cpu_op", "user_annotation", "cuda_runtime", "cuda_driver"}


def rows_of(document, *cats):
    return [e for e in document["traceEvents"] if e.get("ph") == "X" and e.get("cat") in cats]


def idle_us_of(document):
    """Window less the union of the GPU's activities; the window ends before the profiler's last wait.

    Before its first activity the GPU was at work unseen if that waited for 20 us or more after its launch.
    """
    gpu = sorted((e["ts"], e["ts"] + e["dur"]) for e in rows_of(document, *ON_GPU))
    host = rows_of(document, *ON_HOST)
    last = max((e for e in host if e["name"] == "cudaDeviceSynchronize"), key=lambda e: e["ts"])
    now = gpu[0][0] if was_queued(document) else min(gpu[0][0], *(e["ts"] for e in host))
    end = max(last["ts"], *(e["ts"] + e["dur"] for e in host if e is not last))
    idle = 0.0
    for start, stop in gpu:
        idle += max(start - now, 0)
        now = max(now, stop)
    return idle + max(end - now, 0)


def was_queued(document):
    first = min(rows_of(document, *ON_GPU), key=lambda e: e["ts"])
    ends = [
        e["ts"] + e["dur"]
        for e in rows_of(document, "cuda_runtime", "cuda_driver")
        if e["args"].get("correlation") == first["args"]["correlation"]
    ]
    return not ends or first["ts"] - ends[0] > 20


@pytest.mark.parametrize("name", TRACES)
def test_the_pieces_are_the_time_in_which_nothing_ran(facts_of, raw, name):
    idle = idle_of(facts_of(name))
    assert idle.total_us() == pytest.approx(idle_us_of(raw(name)), abs=0.5)
    assert (idle.end_ns > idle.start_ns).all()
    assert (idle.start_ns[1:] >= idle.end_ns[:-1]).all()
    assert sum(idle.total_us(cause) for cause in IdleCause) == pytest.approx(idle.total_us())


def causes_of(facts):
    idle = idle_of(facts)
    return {cause.name: idle.total_us(cause) for cause in IdleCause if idle.total_us(cause) > 0}


@pytest.mark.parametrize(
    "name", ["faults/clean", "faults/opt_forloop", "models/llama_sdpa_generate", "ops/matmul_add_64_warm"]
)
def test_small_work_waits_for_its_launches(facts_of, name):
    causes = causes_of(facts_of(name))
    assert causes["LAUNCH"] > 0.95 * sum(causes.values())


@pytest.mark.parametrize("name", ["seeds/naive", "seeds/sdpa_math", "situations/unet_nchw", "ops/naive_fp32"])
def test_work_that_was_queued_leaves_only_what_the_gpu_needs_in_between(facts_of, raw, name):
    """Launches that ended before the gap began: nearly all of them, 1 to 3 us each."""
    assert "LAUNCH" not in causes_of(facts_of(name))
    idle = idle_of(facts_of(name))
    lengths = idle.length_us[idle.of(IdleCause.DEVICE)]
    assert 0.5 < np.median(lengths) < 3
    events = rows_of(raw(name), *ON_GPU)
    assert lengths.size > 0.75 * len(events) / (1 + name.startswith("ops"))


def test_sleep_is_all_of_the_time_that_is_outside_pytorch(facts_of, raw):
    """Longest stretches between two ops or calls of the host, from the raw JSON."""
    host = sorted(
        (e["ts"], e["ts"] + e["dur"]) for e in rows_of(raw("faults/cpu_stall"), "cpu_op", "cuda_runtime")
    )
    now = min(e["ts"] for e in rows_of(raw("faults/cpu_stall"), "user_annotation"))
    stretches = []
    for start, end in host:
        stretches.append(start - now)
        now = max(now, end)
    longest = sorted(stretches)[-3:]
    causes = causes_of(facts_of("faults/cpu_stall"))
    assert causes["STALL"] == pytest.approx(sum(longest), abs=30)  # less what still ran, more what it delayed
    assert set(causes) == {"STALL", "LAUNCH"}


def test_allocations_hold_up_no_longer_than_they_take(facts_of, raw):
    calls = [e["dur"] for e in rows_of(raw("faults/alloc_churn"), "cuda_runtime")
             if e["name"] in {"cudaMalloc", "cudaFree"}]  # fmt: skip
    assert causes_of(facts_of("faults/alloc_churn"))["ALLOCATION"] == pytest.approx(sum(calls), abs=1)


def test_waits_cost_what_they_last_where_the_host_sets_the_pace(facts_of, raw):
    """Truth: the waits of one call sum to 43 us; the last of all is the profiler's."""
    waits = [e["dur"] for e in rows_of(raw("faults/sync_item"), "cuda_runtime") if "Synchronize" in e["name"]]
    copies = [e for e in rows_of(raw("faults/sync_item"), "gpu_memcpy") if "DtoH" in e["name"]]
    idle = idle_of(facts_of("faults/sync_item"))
    (step,) = [s for s in facts_of("faults/sync_item").scopes if s.scope.name == "step"]
    assert len(copies) == 18
    assert 30 < idle.per_call_us(step, IdleCause.SYNC) < 60
    assert idle.total_us(IdleCause.SYNC) < 1.5 * sum(waits)


def earlier_us(document):
    """Replay the GPU, one stream, with all waits taken out of the host's time: how much earlier it ends."""
    gpu = sorted(rows_of(document, *ON_GPU), key=lambda e: e["ts"])
    calls = rows_of(document, "cuda_runtime", "cuda_driver")
    launches = {e["args"]["correlation"]: e for e in calls}
    last = max((e for e in calls if e["name"] == "cudaDeviceSynchronize"), key=lambda e: e["ts"])
    to_host = {
        e["args"]["correlation"] for e in gpu if e["name"].startswith("Memcpy DtoH (Device -> Pageable")
    }
    waits = [e for e in calls if ("Synchronize" in e["name"] and e is not last)
             or e["args"]["correlation"] in to_host]  # fmt: skip
    waited = [(e["ts"], e["ts"] + e["dur"]) for e in waits]
    end = moved_end = 0.0
    for activity in gpu:
        start, launch = activity["ts"], launches[activity["args"]["correlation"]]
        launched = launch["ts"] + launch["dur"]
        if launched > end:  # the GPU had to wait for the host
            lost = sum(until - since for since, until in waited if until <= launched and since < start)
            moved = max(moved_end, start - lost)
        else:
            moved = moved_end + start - end
        if launch in waits:  # a copy that is waited for is launched before
            since = start if launched > end else launch["ts"]
            waited = [span for span in waited if span[1] != launched] + [(since, launched)]
        end, moved_end = start + activity["dur"], moved + activity["dur"]
    return end - moved_end


@pytest.mark.parametrize(
    "name", ["faults/sync_item", "situations/moe_loop_where_syncs", "models/llama_sdpa_prefill"]
)
def test_without_the_waits_the_gpu_would_be_done_that_much_earlier(facts_of, raw, name):
    idle = idle_of(facts_of(name))
    waits = idle.of(IdleCause.SYNC)
    assert idle.length_us[waits][idle.next_row[waits] != NONE].sum() == pytest.approx(
        earlier_us(raw(name)), rel=0.01, abs=1
    )


@pytest.mark.parametrize(
    ("name", "cause", "part"),
    [
        ("h200_waits/cold_late", "FIRST_USE", 0.9),  # the first SVD
        ("h200_waits/alloc_first_only", "FIRST_USE", 0.9),  # the first product
        ("h200_waits/pageable_htod_nb", "COPY", 0.8),  # its first copy is like the others
        ("h200_waits/item_gpu_bound", "SYNC", 0.7),
        ("h200_waits/alloc_empty_cache", "ALLOCATION", 0.6),
        ("h200_plans/plan_cost_varying", "LIBRARY", 0.9),  # plans come back with every shape
        ("h200_compiled/recompile_once", "COMPILE", 0.9),
        ("h200_idle/loader_inline_plain", "STALL", 0.7),
        ("h200_idle/graph_and_python", "STALL", 0.9),
        ("h200_idle/cpu_ops_before_copy", "LIBRARY", 0.8),
        ("h200_idle/stall_behind_queue", "DEVICE", 0.9),
    ],
)
def test_the_main_cause_is_what_was_made_to_happen(facts_of, name, cause, part):
    causes = causes_of(facts_of(f"../{name}"))
    assert causes[cause] > part * sum(causes.values())


def test_device_and_host_are_compared_by_the_hosts_clock(facts_of, raw, facts_from):
    """The GPU's clock 5 ms behind: what waited for launches does so still."""
    document = raw("faults/clean")
    for event in document["traceEvents"]:
        if event.get("cat") in ON_GPU:
            event["ts"] -= 5000
    skewed = causes_of(facts_from(document))
    sound = causes_of(facts_of("faults/clean"))
    assert skewed["LAUNCH"] == pytest.approx(sound["LAUNCH"], rel=0.03)


def test_without_launches_nobody_knows_why(raw, facts_from):
    document = raw("faults/clean")
    keep = [e for e in document["traceEvents"] if e.get("cat") not in {"cuda_runtime", "cuda_driver", "ac2g"}]
    causes = causes_of(facts_from(document | {"traceEvents": keep}))
    assert set(causes) <= {"UNKNOWN", "DEVICE"}
    assert causes["UNKNOWN"] > 0


def test_without_ops_a_blank_of_the_host_is_unknown(raw, facts_from):
    document = raw("faults/cpu_stall")
    keep = [e for e in document["traceEvents"] if e.get("cat") not in {"cpu_op", "user_annotation"}]
    causes = causes_of(facts_from(document | {"traceEvents": keep}))
    assert "STALL" not in causes
    idle = idle_of(facts_from(document))
    stalls = idle.of(IdleCause.STALL)
    later = stalls[idle.start_ns[stalls] > idle.window[0]]  # the first is before anything that is left
    assert causes["UNKNOWN"] == pytest.approx(idle.length_us[later].sum(), rel=0.02)


def test_a_second_device_has_idle_time_of_its_own_and_one_that_is_not_used_has_none(raw, facts_from):
    document = raw("faults/clean")
    events = document["traceEvents"]
    idle = idle_of(facts_from(document))
    assert np.unique(idle.device).tolist() == [0]
    for number, event in enumerate(e for e in events if e.get("cat") in ON_GPU):
        event["args"]["device"] = number % 2
    both = idle_of(facts_from(document))
    assert np.unique(both.device).tolist() == [0, 1]
    (step,) = [s for s in facts_from(document).scopes if s.scope.name == "step"]
    window = idle.total_us() + sum(e["dur"] for e in events if e.get("cat") in ON_GPU)
    busy = {
        d: sum(e["dur"] for e in events if e.get("cat") in ON_GPU and e["args"]["device"] == d)
        for d in (0, 1)
    }
    for device in (0, 1):
        mine = both.length_us[both.device == device].sum()
        assert mine == pytest.approx(window - busy[device], abs=1)
    assert both.per_call_us(step) < max(call.end_ns - call.start_ns for call in step.scope.calls) / 1e3


def test_a_scopes_idle_time_lies_inside_its_calls(facts_of):
    facts = facts_of("models/llama_sdpa_train")
    idle = idle_of(facts)
    for scope in facts.scopes:
        wall = np.array([call.end_ns - call.start_ns for call in scope.scope.calls]) / 1e3
        assert (idle.by_call_us(scope) <= wall + 1e-6).all()
        inside = idle.within_us(scope, idle.of())
        assert inside.sum() == pytest.approx(idle.by_call_us(scope).sum(), abs=1)
    by_name = {scope.scope.name: scope for scope in facts.scopes}
    parts = sum(idle.per_call_us(by_name[name]) for name in ("forward", "backward", "optimizer"))
    assert parts == pytest.approx(idle.per_call_us(by_name["train_step"]), rel=0.02)


def test_it_is_worked_out_once(facts_of):
    assert idle_of(facts_of("faults/clean")) is idle_of(facts_of("faults/clean"))


def test_a_trace_without_a_gpu_has_no_idle_time(cpu):
    path = min(cpu.glob("*.json.gz"))
    assert len(idle_of(measure(link(read(path))))) == 0


def test_the_big_trace_has_a_part_for_each_gap(big_trace):
    assert len(partition(link(read(big_trace)))) > 80_000
