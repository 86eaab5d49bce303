"""Processes of this machine: every file is examined or said to be lost, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tracehunch.engines import child, local, run, worker
from tracehunch.errors import TracehunchError


def whats(results):
    return [f"{one.source}: {one.what}" for one in results]


def test_results_are_in_the_order_of_the_files_and_the_share_done_rises(tasks, sources):
    files = sources(*"abcdefg")
    for workers in (1, 2):
        done = []
        work = tasks.named if workers == 1 else tasks.loud  # what it prints does not come between
        results = run(files, work=work, workers=workers, progress=done.append)
        assert [one.why for one in results] == list("abcdefg")
        assert done == sorted(done)
        assert done[-1] == 1
        assert len(done) == len(files)


def test_a_worker_that_dies_costs_only_its_file(tasks, sources):
    results = run(sources("a", "dies", "b", "once", "c"), work=tasks.fragile, workers=2)
    assert whats(results) == [
        "a: named",
        "dies: could not be examined",
        "b: named",
        "once: named",
        "c: named",
    ]
    assert results[1].why == "the process that read it died twice; was it short of memory?"


def test_one_file_is_examined_in_this_process(tasks, sources, monkeypatch):
    monkeypatch.setattr(child.subprocess, "Popen", None)
    assert whats(run(sources("a"), work=tasks.named, workers=8)) == ["a: named"]
    assert run([], work=tasks.named) == []


def refuse(_said):
    raise OSError(11, "no more processes")


def test_processes_are_started_where_there_is_work_for_them(tasks, sources, monkeypatch):
    monkeypatch.setattr(child, "_popen", refuse)
    assert len(run(sources(*"abcdef"), work=tasks.named)) == 6  # all is done before one has started
    large = [replace(source, bytes=1 << 30) for source in sources("a", "b")]
    monkeypatch.setattr(local, "processors", lambda: 2)
    with pytest.raises(TracehunchError, match="no worker process"):
        run(large, work=tasks.named)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded on Linux only")
def test_memory_is_bounded_and_what_was_short_is_tried_alone(tasks, sources):
    files = sources("100", "220", "1000", "1")
    results = run(files, work=tasks.hungry, workers=2, max_memory=340 << 20)
    assert whats(results) == ["100: named", "220: named", "1000: needs more memory than there is", "1: named"]


def test_memory_that_runs_out_in_this_process_is_said(tasks, sources):
    results = run(sources("a", "b"), work=tasks.short_of_memory, workers=1)
    assert whats(results) == [f"{name}: needs more memory than there is" for name in "ab"]


def test_workers_that_cannot_start_are_one_error(tasks, sources, monkeypatch):
    monkeypatch.setattr(worker, "command", lambda: [sys.executable, "-c", "import nothing_there"])
    with pytest.raises(
        TracehunchError, match=r"no worker process can be started: ModuleNotFound.*--workers 1"
    ):
        run(sources("a", "b"), work=tasks.named, workers=2)


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import tasks_of_engines
from tracehunch.engines import run
from tracehunch.trace.discover import Source
try:
    run([Source(path, path) for path in sys.argv[1:]], work=tasks_of_engines.slow, workers=2)
except KeyboardInterrupt:
    print("interrupted")
"""


def pids_in(paths):
    """The processes that are at these files, once all are."""
    for _ in range(3000):
        found = [path.read_text() for path in paths if path.exists()]
        if len(found) == len(paths) and all(found):
            return [int(pid) for pid in found]
        time.sleep(0.05)
    raise AssertionError("the workers did not start")


def wait_for_end(pids):
    for _ in range(2400):
        if not any(map(runs, pids)):
            return True
        time.sleep(0.05)
    return False


def runs(pid):
    """Whether a process does; one that ended stays listed where nobody takes over the children of others."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(how, tmp_path):
    # no __main__ guard: the script is not imported again by the workers
    paths = [tmp_path / "a", tmp_path / "b"]
    code = SCRIPT.format(tests=str(Path(__file__).parent))
    command = [sys.executable, "-c", code, *map(str, paths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        pids = pids_in(paths)
        if how == signal.SIGINT:
            os.killpg(process.pid, how)  # as a terminal does: to all of them
        else:
            process.kill()
        assert process.communicate(timeout=120)[0] == ("interrupted\n" if how == signal.SIGINT else "")
    assert wait_for_end(pids)
