"""How long copies run alone was counted from the raw JSON, between any two edges of an interval.

It cannot be that the check cannot tell: what is not known to be pinned belongs to ``pageable-copy``, which
says so.
"""

import itertools

import pytest

from tracehunch.checks import copy_not_overlapped
from tracehunch.verdict import Finding

GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def findings(facts):
    return list(copy_not_overlapped.check(facts))


def alone_us(document, name):
    """Time of the named activities in which no other runs, and the time of all others."""
    gpu = [e for e in document["traceEvents"] if e.get("cat") in GPU]
    ends = sorted({edge for e in gpu for edge in (e["ts"], e["ts"] + e["dur"])})
    alone = others = 0.0
    for low, high in itertools.pairwise(ends):
        running = {e["name"] == name for e in gpu if e["ts"] <= low and e["ts"] + e["dur"] >= high}
        alone += (high - low) * (running == {True})
        others += (high - low) * (False in running)
    return alone, others


def test_a_pinned_copy_on_the_compute_stream(facts_of, raw):
    (found,) = findings(facts_of("faults/h2d_pinned"))
    assert (found.scope, found.severity, found.subject, found.per_call) == ("step", "warning", "aten::to", 1)
    alone, others = alone_us(raw("faults/h2d_pinned"), "Memcpy HtoD (Pinned -> Device)")
    assert alone / 3 == pytest.approx(667.7, abs=0.1)
    assert f"{alone / 3:.1f} us (79% of the scope's GPU time), 32 MiB" in found.summary
    assert found.time_at_stake_us == pytest.approx(min(alone, others) / 3, rel=1e-3)


@pytest.mark.parametrize("name", ["pinned_compute_stream", "pinned_dtoh", "pinned_htod_blocking"])
def test_other_sizes_and_the_way_back(facts_of, raw, name):
    (found,) = findings(facts_of(f"../h200_waits/{name}"))
    document = raw(f"../h200_waits/{name}")
    copies = [e for e in document["traceEvents"] if e.get("cat") == "gpu_memcpy" and e["dur"] > 20]
    alone, _ = alone_us(document, copies[0]["name"])
    assert found.severity == "warning"
    # one of five was launched before the first step
    assert found.time_at_stake_us == pytest.approx(alone / len(copies), rel=0.01)
    assert "copy_stream" in found.fix
    assert ("out.copy_" in found.fix) == (name == "pinned_dtoh")


def test_a_copy_that_compute_overlaps_is_fine(facts_of):
    assert findings(facts_of("../h200_waits/prefetch_side_stream")) == []


def test_moved_beside_the_kernels_it_is_no_finding(raw, facts_from):
    document = raw("faults/h2d_pinned")
    for event in document["traceEvents"]:
        if event.get("cat") == "gpu_memcpy":
            event["tid"] = event["args"]["stream"] = 20
    assert findings(facts_from(document)) == []


WARNINGS = {"faults/h2d_pinned"}


def test_no_other_recorded_trace_has_a_finding(facts_of, recorded):
    assert {name for name in recorded if findings(facts_of(name))} == WARNINGS


def test_where_the_gpu_mostly_idles_it_is_a_note(raw, facts_from):
    document = raw("faults/h2d_pinned")
    for event in document["traceEvents"]:
        if event.get("cat") == "gpu_memcpy":
            event["dur"] = 60.0
    (found,) = findings(facts_from(document))
    assert (found.severity, found.time_at_stake_us) == ("note", pytest.approx(60, abs=0.01))


def test_copies_whose_host_memory_is_not_told_are_left_to_pageable_copy(raw, facts_from):
    document = raw("faults/h2d_pinned")
    for event in document["traceEvents"]:
        if event.get("cat") == "gpu_memcpy":
            event["name"] = "Memcpy HtoD (Host -> Device)"
    facts = facts_from(document)
    assert findings(facts) == []
    assert not any(isinstance(one, Finding) for one in copy_not_overlapped.check(facts))
