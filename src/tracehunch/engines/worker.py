"""A process of the local engine: tasks come in by standard input, results go out by standard output.

It is a plain child and none of ``multiprocessing``'s, which imports the caller's script again. It ends when
its input does, so none is left behind.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from tracehunch.trace import later
from tracehunch.trace.second import SWITCH

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIZE_BYTES: Final = 8
_LOOK_S: Final = 1.0


def command() -> list[str]:
    """Return what starts a worker that finds the same modules as this process, and none in its folder."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from tracehunch.engines.worker import serve; serve()"
    return [sys.executable, "-P", "-c", code]


def environment() -> Mapping[str, str]:
    """Return the variables of a worker: each has one processor, so it starts no second one."""
    return {**later.environment(), SWITCH: "1"}


def send(stream: BinaryIO, message: Any) -> None:
    """Write one message."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(len(data).to_bytes(_SIZE_BYTES, "little") + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Return the next message. EOFError where the other side has gone."""
    size = stream.read(_SIZE_BYTES)
    data = stream.read(int.from_bytes(size, "little")) if len(size) == _SIZE_BYTES else b""
    if not data or len(data) < int.from_bytes(size, "little"):
        raise EOFError
    return pickle.loads(data)  # noqa: S301  # from our own other half


def serve() -> None:
    """Do one task after the other until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anybody prints must not come between the results
    from tracehunch.engines import task  # noqa: F401, PLC0415  # numpy loads now, before memory is bounded

    try:
        send(results, "ready")
        while True:
            work, source, limit = receive(sys.stdin.buffer)
            bound_memory(limit)
            send(results, _outcome(work, source))
    except (EOFError, BrokenPipeError):
        os._exit(0)  # nobody reads any more: nothing is left to be written


def _end_with(parent: int) -> None:
    """End when the parent has been killed, also in the middle of a file."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)


def _outcome(work: Any, source: Any) -> Any:
    """Do a task; None where memory ran out."""
    try:
        return work(source)
    except MemoryError:
        return None


def bound_memory(allowed_bytes: int | None) -> None:
    """Let this process allocate as much beyond what it holds now; more raises MemoryError (Linux)."""
    if allowed_bytes is None or not sys.platform.startswith("linux"):
        return
    import resource  # noqa: PLC0415  # Unix only

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _held_bytes() + allowed_bytes
    resource.setrlimit(
        resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
    )


def _held_bytes() -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:  # noqa: PTH123  # no path
        line = next((line for line in status if line.startswith("VmData:")), "VmData: 0 kB")
    return int(line.split()[1]) << 10
