"""Ranks print, render and convert as a Look does."""

import dataclasses
import io
import json

import pytest
from rich.console import Console

import tracehunch
from tracehunch.compare.ranks import model as plain
from tracehunch.report import ranks_json, ranks_text
from tracehunch.report.layout import View


@pytest.fixture(scope="module")
def job(h200):
    return tracehunch.ranks(h200 / "ranks" / "tp", workers=1)


def test_it_is_what_the_comparison_gave(job):
    assert isinstance(job, tracehunch.Ranks)
    assert isinstance(job, plain.Ranks)
    assert len(job.paths) == 1
    assert {one.name for one in dataclasses.fields(job)} == {
        *(one.name for one in dataclasses.fields(plain.Ranks)),
        "paths",
    }


def test_print_writes_what_the_command_line_shows(job, capsys):
    job.print(width=80)
    text = capsys.readouterr().out
    assert text == ranks_text.render(job, view=View(interactive=True), sources=job.paths)
    assert text.startswith(job.paths[0][:20])
    job.print(width=80, all_ranks=True, file=(file := io.StringIO()))
    assert "Collectives" in file.getvalue()
    assert capsys.readouterr().out == ""
    assert str(job) + "\n" == ranks_text.render(job, sources=job.paths)


def test_colour_only_where_it_is_wanted(job, monkeypatch):
    bare, coloured = io.StringIO(), io.StringIO()
    job.print(file=bare)
    monkeypatch.setenv("FORCE_COLOR", "1")
    job.print(file=coloured)
    assert "\x1b" not in bare.getvalue()
    assert "\x1b[" in coloured.getvalue()


def test_json_has_microseconds_of_the_attributes_nanoseconds(job):
    made = json.loads(job.to_json())
    assert job.to_json() == ranks_json.render(job).decode()
    assert made["schema"] == "tracehunch/1"
    for row, told in zip(job.rows, made["ranks"], strict=True):
        assert told["compute_us"] == row.compute_ns / 1e3
        assert told["window_us"] == row.window_ns / 1e3


@pytest.mark.parametrize("width", [60, 120])
def test_rich_takes_the_width_it_has(job, width):
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=False).print(job)
    lines = file.getvalue().splitlines()
    assert any("Ranks" in line for line in lines)
    assert max(map(len, (line.rstrip() for line in lines if not line.startswith("Next")))) <= width


def test_a_notebook_shows_findings_and_ranks(job):
    html = job._repr_html_()
    for finding in job.findings[:3]:
        assert finding.id in html
    for row in job.rows:
        assert f">{row.rank}</td>" in html


def test_repr_is_short(job):
    assert repr(job) == f"<Ranks: 2 ranks, {len(job.findings)} finding{'s' * (len(job.findings) != 1)}>"
