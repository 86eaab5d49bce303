"""A cluster of our own is in a process of its own: the caller's script is not run again by its workers."""

import subprocess
import sys

import pytest

from tracehunch.engines import local_cluster
from tracehunch.errors import TracehunchError

pytest.importorskip("distributed")
pytestmark = pytest.mark.xdist_group("dask")

SCRIPT = """
import tracehunch
print("begun")
print(len(tracehunch.ranks({folder!r}, engine="dask", workers=1).rows), "ranks")
"""


def test_a_script_needs_no_guard_and_runs_once(h200, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(h200 / "ranks" / "tp")))
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("begun\n2 ranks\n", "")


def test_a_cluster_that_cannot_start_is_one_error(monkeypatch):
    monkeypatch.setattr(sys, "path", ["/nowhere"])
    with (
        pytest.raises(
            TracehunchError, match=r"no Dask cluster can be started here: ModuleNotFound.*--engine local"
        ),
        local_cluster.started(1, 0),
    ):
        pass
