"""Faults planted in other models: all that is loud in each trace, and stakes against what the fix saved."""

import tomllib
from functools import cache
from pathlib import Path

import pytest

from tracehunch.checks import run
from tracehunch.facts import measure
from tracehunch.trace import read
from tracehunch.tree import link

DATA = Path(__file__).parents[1] / "data" / "h200_planted"
EXPECTED = tomllib.loads((DATA / "expected.toml").read_text("utf-8"))
MEASURED = {name: row for name, row in EXPECTED.items() if "saved_us" in row}
LOUD = {"warning", "error"}


@cache
def findings_of(name):
    return run(measure(link(read(DATA / f"{name}.json.gz")))).findings


def test_the_table_is_about_these_traces():
    assert set(EXPECTED) == {path.name.removesuffix(".json.gz") for path in DATA.glob("*.json.gz")}


@pytest.mark.parametrize(("name", "row"), EXPECTED.items(), ids=EXPECTED)
def test_what_was_planted_is_found_and_nothing_else_is_loud(name, row):
    found = findings_of(name)
    assert sorted({f.id for f in found if f.severity in LOUD}) == row["loud"]
    assert set(row.get("notes", ())) <= {f.id for f in found if f.severity == "note"}


@pytest.mark.parametrize(("name", "row"), MEASURED.items(), ids=MEASURED)
def test_the_time_at_stake_is_what_the_fix_saved(name, row):
    """To within a factor of two of the savings measured without and with the profiler."""
    at_stake = sum(f.time_at_stake_us for f in findings_of(name) if f.id in row["stakes"])
    assert min(row["saved_us"]) / 2 <= at_stake <= 2 * max(row["saved_us"])


@pytest.mark.parametrize("name", [name for name, row in EXPECTED.items() if {"subject", "names"} & set(row)])
def test_it_is_named(name):
    row = EXPECTED[name]
    first = next(f for f in findings_of(name) if f.id == row["stakes"][0])
    assert row.get("subject", first.subject) == first.subject
    assert row.get("names", "") in first.summary
