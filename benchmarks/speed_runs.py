"""One run of a command: wall time, CPU time, and the peak of memory over its tree of processes.

Memory is what the system counts as the peak of resident memory where there is one process. Of several, the
sum of their proportional set sizes (shared pages are counted once) is sampled. Linux only; elsewhere the
largest process stands for all.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

SAMPLE_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took; `problem` says why it counts for nothing, `failed` which of its stages broke."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    problem: str = ""
    late: bool = False
    stages: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class _Sampler(threading.Thread):
    """Watches the memory of a process and its descendants while there are any."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak_bytes, self.done = pid, 0, threading.Event()

    def run(self) -> None:
        while not self.done.wait(SAMPLE_S):
            tree = _tree(self.pid)
            if len(tree) > 1:  # of a single process the system itself keeps the peak
                self.peak_bytes = max(self.peak_bytes, sum(map(_pss_bytes, tree)))


def _tree(pid: int) -> list[int]:
    """Return a process and its descendants; those that ended meanwhile are left out."""
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [pid, *(found for child in children for found in _tree(child))]


def _pss_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    lines = (line.split() for line in text.splitlines())
    return next((int(words[1]) * 1024 for words in lines if words[0] == "Pss:"), 0)


def warm(paths: tuple[Path, ...]) -> None:
    """Read files once, so that no run pays for the disk."""
    for path in paths:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            with file.open("rb") as opened:
                while opened.read(1 << 20):
                    pass


def _forget_peak() -> None:
    """Let the peak of this process be its present size: a child's peak begins with that of its parent."""
    with contextlib.suppress(OSError):  # the largest it ever was is then the least that is told
        Path("/proc/self/clear_refs").write_text("5")


def measured(command: list[str], timeout_s: float) -> Run:
    """Run a command to its end or until its time is over, then end all that it started."""
    _forget_peak()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
        sampler, late = _Sampler(process.pid), threading.Event()
        timer = threading.Timer(timeout_s, lambda: (late.set(), _end(process.pid)))
        sampler.start()
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        timer.cancel()
        sampler.done.set()
        sampler.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        _end(process.pid)
        told = _told(_text(out))
        problem = _problem(process.returncode, late.is_set(), timeout_s, _text(err))
    largest = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Run(
        seconds,
        usage.ru_utime + usage.ru_stime,
        max(sampler.peak_bytes, largest),
        problem,
        late.is_set(),
        told.get("seconds", {}),
        told.get("failed", {}),
    )


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended by itself, as it should
        os.killpg(group, signal.SIGKILL)


def _text(file: Any) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _told(text: str) -> dict[str, Any]:
    """Return what a driver printed last, nothing for other programs."""
    last = text.rstrip().rpartition("\n")[2]
    try:
        told = json.loads(last)
    except ValueError:
        return {}
    return told if isinstance(told, dict) and "seconds" in told else {}


def _problem(code: int, late: bool, timeout_s: float, errors: str) -> str:
    if late:
        return f"over {timeout_s:.0f} s"
    if code == 0:
        return ""
    last = re.sub(r"\(?/\S+", "...", errors.strip().rpartition("\n")[2])  # paths say nothing elsewhere
    return f"exit {code}: {last[:100]}" if last else f"exit {code}"
