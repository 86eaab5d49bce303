"""Tasks that other processes import: what may go wrong with one file."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tracehunch.engines.task import examined, unread


def named(source):
    return unread(source, "named", source.shown)


def fragile(source):
    """Dies at ``dies``; at ``once`` the first time only, which the file ``place`` remembers."""
    if source.shown == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if source.shown == "once" and not Path(source.place).exists():
        Path(source.place).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return named(source)


def dies_once(source):
    """Examine, but the first that comes to rank 100 is killed in the middle."""
    marker = Path(source.place + ".seen")
    if source.shown.endswith("rank100.json.gz") and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return examined(source)


def hungry(source):
    """Take as many MiB as the name says."""
    held = bytearray(int(source.shown) << 20)
    held[:: 1 << 12] = b"x" * len(held[:: 1 << 12])
    return named(source)


def short_of_memory(_source):
    raise MemoryError


def loud(source):
    print("to standard output")  # noqa: T201  # it is what is tested
    return named(source)


def slow(source):
    Path(source.place).write_text(str(os.getpid()))
    time.sleep(60)


def broken(_source):
    raise ZeroDivisionError("broken")
