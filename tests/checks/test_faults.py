"""Planted faults: every + and - of the table beside the traces, for the checks that there are."""

import re
from pathlib import Path

import pytest

from tracehunch.checks import CHECKS, check_id, run

FAULTS = Path(__file__).parents[1] / "data" / "h200" / "faults"
IDS = {check_id(module) for module in CHECKS}
LOUD = {"warning", "error"}


def table():
    """Trace -> (what must be found, what must be no warning), the cells as they are."""
    rows = re.findall(
        r"^\| (\w+) \|(.*)\|(.*)\|(.*)\|$", (FAULTS / "faults.md").read_text("utf-8"), re.MULTILINE
    )
    return {name: (wanted, unwanted) for name, _, wanted, unwanted in rows if name != "trace"}


def ids_in(cell):
    return [name for name in re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)+", cell) if name in IDS]


TABLE = table()


def test_the_table_is_about_these_traces():
    assert set(TABLE) == {path.name.removesuffix(".json.gz") for path in FAULTS.glob("*.json.gz")}


@pytest.mark.parametrize(("name", "cells"), TABLE.items(), ids=TABLE)
def test_what_was_planted_is_found_and_nothing_else_is_loud(facts_of, name, cells):
    found = run(facts_of(f"faults/{name}")).findings
    wanted, unwanted = cells
    for clause in wanted.split("ranked below")[0].split(";"):
        there = [name in {f.id for f in found} for name in ids_in(clause)]
        assert (any(there) if " or " in clause else all(there)) or not there, clause
    loud = {f.id for f in found if f.severity in LOUD}
    if "everything but" in unwanted:
        assert loud <= set(ids_in(unwanted))
    else:
        assert not loud & set(ids_in(unwanted))


@pytest.mark.skipif("sync-stall" not in IDS, reason="no such check yet")
def test_waits_are_named_and_rank_below_the_launches_that_they_are_part_of(facts_of):
    found = run(facts_of("faults/sync_item")).findings
    ids = [f.id for f in found]
    wait = next(f for f in found if f.id == "sync-stall")
    assert "aten::item" in wait.summary or "_local_scalar_dense" in wait.summary
    assert 0 < wait.time_at_stake_us <= 60
    assert ids.index("overhead-bound") < ids.index("sync-stall")


def test_a_sleep_of_3_ms_costs_3_ms_a_call(facts_of):
    found = next(f for f in run(facts_of("faults/cpu_stall")).findings if f.id == "host-stall")
    assert found.severity == "warning"
    assert found.time_at_stake_us == pytest.approx(3000, rel=0.1)


@pytest.mark.skipif("dtype-round-trip" not in IDS, reason="no such check yet")
def test_casts_there_and_back_are_a_warning_and_clones_a_note(facts_of):
    found = run(facts_of("faults/dtype_pingpong")).findings
    assert {f.severity for f in found if f.id == "dtype-round-trip"} == {"warning"}
    clones = [f for f in found if f.id in {"hidden-copy", "layout-copy"} and "clone" in f.summary]
    assert {f.severity for f in clones} == {"note"}
