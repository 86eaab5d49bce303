"""A Dask cluster of our own, in a process of its own that ends with this one.

Its workers import the main module of the process that starts them: a user's script, were it started here.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tracehunch.engines.child import last_line
from tracehunch.errors import TracehunchError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLOSES_S: Final = 15


@contextmanager
def started(workers: int, memory_bytes: int) -> Iterator[str]:
    """Yield the address of the scheduler; ``memory_bytes`` of each worker, 0 for no bound.

    Raises:
        TracehunchError: it cannot be started.

    """
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from tracehunch.engines.local_cluster import serve; serve({workers}, {memory_bytes})"
    )
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603  # this Python, and a command of our own
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,  # Ctrl-C is for this process, which ends that one
        )
        try:
            address = _pipe(process.stdout).readline().strip()
            if not address:
                process.wait(_CLOSES_S)
                why = last_line(said) or f"it ended with status {process.returncode}"
                raise TracehunchError("no Dask cluster can be started here", why, "--engine local needs none")
            yield address
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    _pipe(process.stdin).close()
    try:
        process.wait(_CLOSES_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _pipe(process.stdout).close()


def serve(workers: int, memory_bytes: int) -> None:
    """Run a cluster until standard input ends; say its address first."""
    import dask  # noqa: PLC0415 - an extra
    from distributed import LocalCluster  # noqa: PLC0415 - as above

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = {"distributed.scheduler.allowed-failures": 1, "logging.distributed": "critical"}
    with (
        tempfile.TemporaryDirectory(prefix="tracehunch-", ignore_cleanup_errors=True) as scratch,
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=memory_bytes,
            dashboard_address="127.0.0.1:0",
            local_directory=scratch,
            silence_logs=logging.CRITICAL,
            host="127.0.0.1",
        ) as cluster,
    ):
        sys.stdout.write(f"{cluster.scheduler_address}\n")
        sys.stdout.flush()
        sys.stdin.read()


def _pipe(pipe: object) -> Any:
    assert pipe is not None
    return pipe
