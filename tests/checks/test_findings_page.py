"""The table of docs/findings.md says what the checks say of the traces that are shipped."""

import re
from pathlib import Path

import pytest

from tracehunch import checks

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
ROWS = {
    name: cells
    for name, *cells in re.findall(
        r"^\| h200/(\S+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
}


def ids(cell):
    return set() if cell == "-" else set(cell.split(", "))


def test_every_trace_has_a_row(recorded):
    assert set(ROWS) == set(recorded)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_row_is_what_the_checks_say(facts_of, name):
    """An id stands once: where it is loudest."""
    checked = checks.run(facts_of(name))
    loud = {one.id for one in checked.findings if one.severity != "note"}
    noted = {one.id for one in checked.findings} - loud
    untold = {one.key for one in checked.cannot_tell} - loud - noted
    assert [ids(cell) for cell in ROWS[name]] == [loud, noted, untold]
