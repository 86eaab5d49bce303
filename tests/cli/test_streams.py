"""Standard streams that are closed: nothing is lost in silence, and nothing is an internal error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NAIVE = Path(__file__).parents[1] / "data" / "h200" / "seeds" / "naive.json.gz"


def _look(arguments: str, closed: str) -> subprocess.CompletedProcess[str]:
    line = f'"{sys.executable}" -m tracehunch look {arguments} {closed}'
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)


def test_a_closed_stderr_costs_nothing_of_the_result():
    assert _look(str(NAIVE), "2>&-").stdout == _look(str(NAIVE), "").stdout


def test_a_closed_stdout_is_said_unless_a_file_is_written(tmp_path):
    done = _look(str(NAIVE), ">&-")
    assert done.returncode == 2
    assert "standard output is closed" in done.stderr
    assert _look(f"{NAIVE} -o {tmp_path}/x.json", ">&-").returncode == 0
    assert (tmp_path / "x.json").stat().st_size > 1000


@pytest.mark.parametrize(("arguments", "code"), [("-", 2), (str(NAIVE), 0)])
def test_a_closed_stdin_matters_only_where_it_is_read(arguments, code):
    done = _look(arguments, "<&-")
    assert done.returncode == code
    assert "internal error" not in done.stderr


def test_all_closed_still_exits_with_a_code():
    assert _look(str(NAIVE), "<&- >&- 2>&-").returncode == 2
