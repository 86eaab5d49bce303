"""Which findings a report shows: the eight costliest, all with all_findings."""

from dataclasses import replace

import pytest

from tracehunch.judge import examine
from tracehunch.report import finding_texts, markdown, terminal
from tracehunch.report.summary import Selection
from tracehunch.trace import read
from tracehunch.verdict import Checked, Finding


def finding(number, severity):
    return Finding(
        f"id-{number}", "step", severity, "high", 100.0 - number, f"saw {number}", "why.", "do.", (number,)
    )


@pytest.fixture(scope="module")
def look(h200):
    found = [finding(n, "note") for n in range(7)] + [finding(n, "warning") for n in range(7, 12)]
    return replace(examine(read(h200 / "faults" / "clean.json.gz")), checked=Checked(tuple(found)))


def shown(text):
    return [number for number in range(12) if f"id-{number}" in text.replace("&#45;", "-").split("Next:")[0]]


def test_the_eight_costliest_warnings_first(look):
    found = finding_texts.findings(look, Selection())
    chosen, more = finding_texts.shown(found, Selection())
    assert [one.id for one in chosen] == [f"id-{n}" for n in (7, 8, 9, 10, 11, 0, 1, 2)]
    assert more == "4 notes more, of less weight; --all shows all of them"


def test_what_is_left_out_is_counted_by_severity(look):
    more = finding_texts.shown(finding_texts.findings(look, Selection())[3:] * 2, Selection())[1]
    assert more.startswith("2 warnings, 8 notes more")


def test_all_of_them_when_asked(look):
    found = finding_texts.findings(look, Selection())
    assert finding_texts.shown(found, Selection(all_findings=True)) == (found, "")
    assert finding_texts.shown(found[:8], Selection()) == (found[:8], "")


@pytest.mark.parametrize("render", [terminal.render, markdown.render])
def test_reports_show_eight_or_all(look, render):
    few, everything = render(look), render(look, selection=Selection(all_findings=True))
    assert shown(few) == [0, 1, 2, 7, 8, 9, 10, 11]
    assert shown(everything) == list(range(12))
    assert "all shows all of them" in few
    assert "all shows all of them" not in everything


def test_the_terminal_has_causes_of_all_when_asked(look):
    assert terminal.render(look).count("why.") == 8  # five warnings, three notes
    assert terminal.render(look, selection=Selection(all_findings=True)).count("why.") == 12
