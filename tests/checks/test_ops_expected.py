"""The traces of single operations: all that is said of each, against a list made by reading them."""

import tomllib
from pathlib import Path

import pytest

from tracehunch.checks import run

OPS = Path(__file__).parents[1] / "data" / "h200" / "ops"
EXPECTED = tomllib.loads(Path(__file__).with_name("ops_expected.toml").read_text(encoding="utf-8"))
TRACES = sorted(path.name.removesuffix(".json.gz") for path in OPS.glob("*.json.gz"))


def test_the_list_has_every_trace():
    assert sorted(EXPECTED) == TRACES


@pytest.mark.parametrize("name", TRACES)
def test_what_is_said_is_what_was_read(facts_of, name):
    seen = run(facts_of(f"ops/{name}"))
    said = [f"{found.severity} {found.id}" for found in seen.findings]
    assert sorted(said) == sorted(EXPECTED[name]["findings"])
    assert seen.cannot_tell == ()
