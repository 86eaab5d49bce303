"""A comparison prints, renders and converts as a Look does."""

import dataclasses
import io
import json

import pytest
from rich.console import Console

import tracehunch
from tracehunch.compare import model as plain
from tracehunch.report import diff_json, diff_terminal
from tracehunch.report.layout import View


@pytest.fixture(scope="module")
def files(h200):
    return [h200 / "seeds" / f"{name}.json.gz" for name in ("naive", "naive_inplace")]


@pytest.fixture(scope="module")
def compared(files):
    return tracehunch.diff(*files)


def test_it_is_what_the_comparison_gave(compared, files):
    assert isinstance(compared, tracehunch.Diff)
    assert isinstance(compared, plain.Diff)
    assert compared.paths == tuple(map(str, files))
    assert {one.name for one in dataclasses.fields(compared)} - {
        one.name for one in dataclasses.fields(plain.Diff)
    } == {"paths"}


def test_print_writes_what_the_command_line_shows(compared, capsys):
    compared.print(width=80)
    text = capsys.readouterr().out
    assert text == diff_terminal.render(compared, view=View(interactive=True), sources=compared.paths)
    assert "Scopes" in text
    compared.print(width=80, all_scopes=True, file=(file := io.StringIO()))
    assert len(file.getvalue()) > len(text)
    assert capsys.readouterr().out == ""
    assert str(compared) + "\n" == diff_terminal.render(compared, sources=compared.paths)
    assert repr(compared).startswith("<Diff: ")


def test_json_is_that_of_the_command(compared):
    assert compared.to_json() == diff_json.render(compared).decode()
    assert json.loads(compared.to_json())["schema"] == "tracehunch/1"


def test_notebooks_and_rich_show_the_report_and_nothing_in_it_is_markup(compared):
    html = compared._repr_html_()
    assert "-&gt;" in html
    assert "->" not in html
    console = Console(file=io.StringIO(), width=80, color_system=None)
    console.print(dataclasses.replace(compared, paths=("naive.json.gz", "a" * 100)))
    drawn = [line.rstrip() for line in console.file.getvalue().splitlines()]
    view = View(width=80, interactive=True)
    told = diff_terminal.render(compared, view=view, sources=("naive.json.gz", "a" * 100)).splitlines()
    assert drawn[: len(told) - 1] == told[:-1]
    folded = "".join(drawn[len(told) - 1 :]).replace(" ", "")
    assert folded == told[-1].replace(" ", "")  # a long command is folded, not cut


def test_traces_without_a_file_go_by_their_labels(files):
    before, after = map(tracehunch.read, files)
    made = tracehunch.diff(before, after)
    assert made.paths == ()
    assert "naive.json.gz" in str(made)
