"""A second process reads the later part of a large trace: the same comes out as of one process."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from tests.trace.test_ahead import SHAPES, STACKS, TRAINING, damages, same

from tracehunch.engines import worker
from tracehunch.trace import ahead, events, later, packed, read, second, sink

PIECE_BYTES = 5_000
BESIDE = second.beside
PACKS = pytest.mark.parametrize("pack", [bytes, lambda text: gzip.compress(text, 1)], ids=["plain", "gz"])
TEXTS = pytest.mark.parametrize("text", [SHAPES, STACKS, TRAINING], ids=["shapes", "stacks", "training"])


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make a few kilobytes large, in this process."""
    for module, name, value in (
        (sink, "IN_MEMORY_BYTES", 8_000),
        (ahead, "_STEP_BYTES", 1),
        (events, "PIECE_BYTES", PIECE_BYTES),
        (packed, "BLOCK_BYTES", 3_000),
        (second, "LEAST_BYTES", 0),
        (second, "LATE_BYTES", 0),
    ):
        monkeypatch.setattr(module, name, value)


class Beside:
    """Stands for the process; reads in this one, and hands over through a pipe all the same."""

    def __init__(self, data, goal):
        self.data, self.goal = data, goal

    def part(self):
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb", buffering=0) as target:
            part = later.read_later(self.data, self.goal, PIECE_BYTES)
            sender = threading.Thread(target=later.send, args=(target, part))
            sender.start()
            received = later.receive(source)
            sender.join()
        return received


@pytest.fixture
def taken(monkeypatch):
    """Have every file read in two parts, the second from ``share`` of the text on; note how many pieces."""
    pieces = []

    @contextmanager
    def beside(data, _):
        n_bytes = len(gzip.decompress(data)) if bytes(data[:2]) == b"\x1f\x8b" else len(data)
        yield Beside(data, int(pieces[0] * n_bytes))

    def noted(reader, part):
        pieces.append(len(part.pieces))
        return take_over(reader, part)

    take_over = events.take_over
    monkeypatch.setattr(events, "take_over", noted)
    monkeypatch.setattr(second, "beside", beside)
    return pieces


def one_process(path, monkeypatch):
    """Read as if there were no second process."""
    with monkeypatch.context() as patch:
        patch.setattr(second, "beside", BESIDE)
        patch.setenv(second.SWITCH, "1")
        return read(path)


@TEXTS
@PACKS
@pytest.mark.parametrize("share", [0.0, 0.5, 0.8])
def test_two_parts_are_the_whole(taken, monkeypatch, tmp_path, text, pack, share):  # noqa: PLR0917  # as above
    path = tmp_path / "trace.json"
    path.write_bytes(pack(text))
    taken.append(share)
    assert same(read(path), one_process(path, monkeypatch))
    assert sum(taken[1:]) > 0


@pytest.mark.parametrize("text", [SHAPES, STACKS], ids=["shapes", "stacks"])
@PACKS
def test_a_damaged_trace_reads_as_in_one_process(taken, monkeypatch, tmp_path, text, pack):
    path = tmp_path / "trace.json"
    taken.append(0.3)
    for number, damaged in enumerate(damages(text)):
        path.write_bytes(pack(damaged))
        assert same(read(path), one_process(path, monkeypatch)), number
    assert sum(taken[1:]) > 0


@pytest.fixture
def trace(tmp_path):
    """Write a trace that is large here."""
    path = tmp_path / "trace.json"
    path.write_bytes(TRAINING)
    return path


@pytest.fixture
def parts(monkeypatch):
    """Note what the processes handed over, and the processes themselves."""
    noted = []
    part, start = second.Second.part, second.Second.__init__

    def noting(self):
        noted.append(part(self))
        return noted[-1]

    def starting(self, process, goal):
        noted.append(process)
        start(self, process, goal)

    monkeypatch.setattr(second.Second, "part", noting)
    monkeypatch.setattr(second.Second, "__init__", starting)
    monkeypatch.setattr(second, "processors", lambda: 2)
    monkeypatch.setattr(second, "is_any_idle", lambda: True)
    return noted


def test_a_real_process_hands_over_its_part_and_ends(trace, parts, monkeypatch):
    monkeypatch.setattr(second, "_PATIENCE_S", 300.0)  # a busy machine takes seconds to start it
    monkeypatch.setenv("PYTHONPATH", str(trace.parent))
    (trace.parent / "numpy.py").write_text("raise SystemExit('not the module that this process has')")
    got = read(trace)
    process, part = parts
    assert part.pieces
    assert process.returncode is not None
    assert same(got, one_process(trace, monkeypatch))


@pytest.mark.parametrize(
    "code",
    ["import nothing_there", "import os; os.write(1, b'\\1' + bytes(7) + b'\\x40')", "import os; os.abort()"],
    ids=["no module", "half an answer", "killed"],
)
def test_a_process_that_fails_is_done_without(trace, parts, monkeypatch, code):
    monkeypatch.setattr(later, "command", lambda *_: [sys.executable, "-c", code])
    got = read(trace)
    assert parts[1:] == [None]
    assert same(got, one_process(trace, monkeypatch))


def test_a_process_that_hangs_is_ended(trace, parts, monkeypatch):
    monkeypatch.setattr(later, "command", lambda *_: [sys.executable, "-c", "import time; time.sleep(600)"])
    monkeypatch.setattr(second, "_PATIENCE_S", 0.0)
    got = read(trace)
    assert parts[1:] == [None]
    assert parts[0].returncode == (-signal.SIGKILL if os.name == "posix" else 1)
    assert same(got, one_process(trace, monkeypatch))


def test_a_file_that_was_replaced_is_not_read(trace, parts, monkeypatch):
    monkeypatch.setattr("tracehunch.trace.source.identity_of", lambda _: (0, 0, 0, 0))
    got = read(trace)
    assert parts[1:] == [None]
    assert same(got, one_process(trace, monkeypatch))


def test_no_process_where_none_can_be_started(trace, parts, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError("not here")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert len(read(trace))
    assert not parts


def test_it_is_ended_when_reading_is_interrupted(trace, parts):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(trace, progress=interrupt)
    assert parts[0].returncode is not None


def test_who_starts_one(trace, parts, monkeypatch):
    assert second.may_start()
    assert worker.environment()[second.SWITCH]
    answers = []
    thread = threading.Thread(target=lambda: answers.append(second.may_start()))
    thread.start()
    thread.join()
    assert answers == [False]
    for patch in (
        lambda patch: patch.setenv(second.SWITCH, "1"),
        lambda patch: patch.setattr(second, "processors", lambda: 1),
        lambda patch: patch.setattr(second, "is_any_idle", lambda: False),
        lambda patch: patch.setattr(sys, "frozen", True, raising=False),
        lambda patch: patch.setattr(sys, "executable", "/opt/app/blender"),
        lambda patch: patch.setattr(sys, "executable", ""),
    ):
        with monkeypatch.context() as context:
            patch(context)
            assert not second.may_start()
    monkeypatch.setattr(second, "LEAST_BYTES", len(TRAINING) + 1)
    read(trace)
    assert not parts


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX only")
def test_it_does_not_outlive_a_parent_that_was_killed(tmp_path):
    os.mkfifo(tmp_path / "never written")
    code = (
        "import os, subprocess, sys; from tracehunch.trace import later; "
        "command = later.command(sys.argv[1], (0,), 0, 5000); "
        "print(subprocess.Popen(command, stdout=subprocess.DEVNULL).pid, flush=True); os._exit(1)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "never written")]
    pid = int(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and _runs(pid):
        time.sleep(0.1)
    assert not _runs(pid)


def _runs(pid):
    """Whether a process that is no child of this one is there, and no zombie."""
    command = ["ps", "-o", "stat=", "-p", str(pid)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1] not in ("", "Z")
