"""Bytes, times and rates were taken from the copies' own arguments in the raw JSON."""

import pytest

from tracehunch.checks import pageable_copy, sync_stall
from tracehunch.verdict import CannotTell


def findings(facts):
    return [one for one in pageable_copy.check(facts) if not isinstance(one, CannotTell)]


def copies(document):
    return [e for e in document["traceEvents"] if "Pageable" in e.get("name", "")]


def test_it_gives_bytes_bandwidth_and_the_time_the_host_was_held_up(facts_of, raw):
    (found,) = findings(facts_of("faults/h2d_pageable"))
    assert (found.scope, found.severity, found.subject) == ("step", "warning", "aten::to")
    mine = copies(raw("faults/h2d_pageable"))
    assert [e["args"]["bytes"] for e in mine] == [16 << 20] * 3
    microseconds = sum(e["dur"] for e in mine) / 3
    assert (
        f"16 MiB in {microseconds / 1e3:.3f} ms ({(16 << 20) / microseconds / 1e3:.1f} GB/s)" in found.summary
    )
    # what pinned memory would save lies between the copies' time above 24 GB/s and all that held the host up
    held = [e for e in raw("faults/h2d_pageable")["traceEvents"] if e.get("cat") == "cuda_runtime"]
    ids = {e["args"]["correlation"] for e in mine}
    launches = [e for e in held if e["args"]["correlation"] in ids]
    waits = [e for e in held if e["name"] == "cudaStreamSynchronize"]
    most = sum(e["dur"] for e in launches + waits) / 3
    assert microseconds - (16 << 20) / 24e3 < found.time_at_stake_us <= most + 1e-3


def test_non_blocking_does_not_help(facts_of):
    (found,) = findings(facts_of("../h200_waits/pageable_htod_nb"))
    assert found.severity == "warning"
    assert "32 MiB" in found.summary


def test_a_result_fetched_into_pageable_memory(facts_of, raw):
    (found,) = findings(facts_of("../h200_waits/pageable_dtoh"))
    (copy, *_) = copies(raw("../h200_waits/pageable_dtoh"))
    assert copy["name"] == "Memcpy DtoH (Device -> Pageable)"
    assert "from the GPU to pageable memory, 32 MiB" in found.summary
    # 1.6 GB/s against the 24 GB/s assumed: nearly all of 21 ms
    assert found.time_at_stake_us == pytest.approx(21_000, rel=0.03)
    assert "out.copy_(x, non_blocking=True)" in found.fix


def test_pinned_copies_of_the_same_trace_give_the_rate(raw, facts_from):
    document = raw("faults/h2d_pinned")
    first, *rest = [e for e in document["traceEvents"] if e.get("cat") == "gpu_memcpy"]
    first["name"] = "Memcpy HtoD (Pageable -> Device)"
    (found,) = findings(facts_from(document))
    assert found.confidence == "high"
    rate = sorted(e["args"]["bytes"] / e["dur"] / 1e3 for e in rest)
    assert f"{sum(rate) / 2:.1f} GB/s, as the pinned copies in this trace reach" in found.cause
    assert found.severity == "note"  # one call of three


WARNINGS = {"faults/h2d_pageable"}


def test_no_other_recorded_trace_has_a_finding(facts_of, recorded):
    assert {name for name in recorded if findings(facts_of(name))} == WARNINGS


@pytest.mark.parametrize("name", ["faults/h2d_pinned", "faults/sync_item", "models/llama_eager_prefill"])
def test_it_is_silent_about_pinned_and_tiny_copies(facts_of, name):
    assert list(pageable_copy.check(facts_of(name))) == []


def test_what_it_reports_is_no_sync_stall(facts_of):
    assert list(sync_stall.check(facts_of("faults/h2d_pageable"))) == []


def test_amd_does_not_tell(raw, facts_from):
    document = raw("faults/h2d_pageable")
    for event in copies(document):
        event["name"] = "Memcpy HtoD (Host -> Device)"
    (untold,) = pageable_copy.check(facts_from(document))
    assert (untold.key, untold.scope) == ("pageable-copy", "step")
    assert "do not say whether host memory was pinned" in untold.reason
