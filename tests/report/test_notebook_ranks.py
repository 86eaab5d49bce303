"""Many ranks in a notebook: in its words, and harmless."""

from dataclasses import replace

import pytest

from tracehunch import verdict
from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.examine import examine
from tracehunch.report import notebook_ranks, ranks_rows, ranks_summary

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m"


@pytest.fixture(scope="module")
def job(h200):
    return compare([examine(path) for path in sorted((h200 / "ranks" / "tp").iterdir())])


def test_it_shows_findings_ranks_and_collectives(job):
    html = notebook_ranks.ranks_html(job, ["my job"])
    assert ">my job</div>" in html
    for one in ranks_summary.findings(job):
        assert one.id in html
        assert one.summary.replace("'", "&#x27;") in html
    for text in ranks_rows.rank_texts(job.rows, each=ranks_rows.per_step(job.rows)):
        assert f">{text.compute}</td>" in html
        assert f">{text.window}</td>" in html
    assert "<details><summary><span" in html


def test_text_of_files_is_shown_and_not_run(job):
    finding = verdict.Finding(
        "straggler", HOSTILE, "error", "high", 1.0, HOSTILE, HOSTILE, HOSTILE, (1,), subject=HOSTILE
    )
    made = replace(job, findings=(finding,), devices=(HOSTILE,), other_jobs=(HOSTILE,))
    html = notebook_ranks.ranks_html(made, [HOSTILE])
    for word in ("<script", "<img", "\x1b"):
        assert word not in html
    assert "&lt;script&gt;" in html


def test_nothing_in_it_loads_runs_or_paints(job):
    html = notebook_ranks.ranks_html(job)
    for word in ("<script", "<style", "http", "src=", "href", "onclick", "background", " color:", "#fff"):
        assert word not in html


def test_what_could_not_be_matched_is_said(job):
    html = notebook_ranks.ranks_html(replace(job, matched=(), bandwidth=()))
    assert "cannot tell" in html
