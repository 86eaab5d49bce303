"""Two ranks of one job: rank 1 waits for rank 0 in every collective; counted over the raw JSON."""

import math

from tracehunch.checks import straggler
from tracehunch.verdict import CannotTell, Finding

WAITS = "ranks/ddp/rank1"
LATE = "ranks/ddp/rank0"


def results(facts):
    return list(straggler.check(facts))


def waited_us(document):
    """Above what the quickest byte explains, of the collectives whose size and launch are recorded."""
    launches = {
        e["args"]["correlation"]
        for e in document["traceEvents"]
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})
    }
    found = [
        (e["dur"], 2 * e["args"]["In msg nelems"])
        for e in document["traceEvents"]
        if e.get("cat") == "kernel" and "In msg nelems" in e["args"] and e["args"]["correlation"] in launches
    ]
    rate = max(moved / length for length, moved in found)
    floor = min(200.0, *(length for length, _ in found))
    return sum(max(length - max(moved / rate, floor), 0) for length, moved in found)


def test_the_rank_that_waits_says_so(facts_of, raw):
    (found,) = results(facts_of(WAITS))
    assert (found.id, found.severity, found.time_at_stake_us) == ("straggler", "note", 0)
    each = waited_us(raw(WAITS)) / 3
    told = float(found.summary.split(" of which ")[1].split(" ms")[0]) * 1e3
    assert math.isclose(told, each, rel_tol=2e-3)
    assert found.per_call == 6


def test_it_says_first_that_another_rank_is_late_and_what_names_it(facts_of):
    (found,) = results(facts_of(WAITS))
    assert found.summary.startswith("another rank is late: this one waits")
    assert "tracehunch ranks FOLDER" in found.summary
    assert found.fix.startswith("Look at the late rank, not at this one")
    for verb in ("tracehunch look", "tracehunch ranks"):
        assert verb in straggler.__doc__


def test_the_late_rank_waits_for_nobody(facts_of):
    assert results(facts_of(LATE)) == []


def test_nothing_else_recorded_waits(facts_of, recorded):
    assert [name for name in recorded if results(facts_of(name))] == [WAITS]


def test_collectives_of_unknown_size_cannot_be_told(raw, facts_from):
    """Constructed: what PyTorch before 2.3 recorded of the same collectives."""
    document = raw(WAITS)
    for event in document["traceEvents"]:
        for key in ("In msg nelems", "Out msg nelems"):
            event.get("args", {}).pop(key, None)
    (said,) = results(facts_from(document))
    assert isinstance(said, CannotTell)
    assert said.record_with


def test_small_messages_are_slow_without_waiting(raw, facts_from):
    """Constructed: a tenth of the size in the same 50 us is latency."""
    document = raw(LATE)
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel" and "In msg nelems" in event["args"]:
            event["args"]["In msg nelems"] //= 100 if event["dur"] < 80 else 1
            event["args"]["Out msg nelems"] = event["args"]["In msg nelems"]
    assert not any(isinstance(one, Finding) for one in results(facts_from(document)))
