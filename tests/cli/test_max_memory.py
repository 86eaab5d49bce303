"""--max-memory of look, check and diff."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tracehunch.cli import main
from tracehunch.trace import foresee
from tracehunch.trace.foresee import need_of

TRACES = Path(__file__).parents[1] / "data" / "h200"
TRACE = str(TRACES / "situations/gpt_recompiles.json.gz")
SMALL = str(TRACES / "seeds/naive.json.gz")


def run(*args):
    return CliRunner().invoke(main, args)


@pytest.fixture
def hunch(tmp_path):
    path = tmp_path / "hunch.toml"
    path.write_text('[[guess]]\nscope = "*"\nkernels = 5\n')
    return str(path)


@pytest.mark.parametrize("verb", ["look", "check", "diff"])
def test_what_needs_more_is_refused(verb, hunch):
    first = {"look": (), "check": (hunch,), "diff": (SMALL,)}[verb]
    result = run(verb, *first, TRACE, "--max-memory", "120 MB")
    assert result.exit_code == 2
    assert "gpt_recompiles.json.gz: reading it takes about" in result.stderr
    assert result.stdout == ""


def test_two_traces_share_what_is_allowed():
    need = need_of(memoryview(Path(TRACE).read_bytes())).peak_bytes
    assert run("diff", TRACE, SMALL, "--max-memory", str(need)).exit_code == 2
    assert run("look", TRACE, "--max-memory", str(need)).exit_code == 0


def test_without_it_what_is_free_is_the_limit(monkeypatch):
    monkeypatch.setattr(foresee, "free_memory", lambda: 1 << 20)
    assert "1 MiB may be used" in run("look", SMALL).stderr
    monkeypatch.setattr(foresee, "free_memory", lambda: None)
    assert run("look", SMALL).exit_code == 0


@pytest.mark.parametrize("size", ["4", "x", "4 apples", "-1GB", "0"])
def test_sizes_are_understood_or_explained(size):
    result = run("look", SMALL, "--max-memory", size)
    assert result.exit_code == 2
    assert ("write it as 4GB" in result.stderr) is (size != "4")
