"""The Dask engine: files on the workers of a cluster, which read them where they are."""

from __future__ import annotations

import importlib.metadata
import logging
import platform
import signal
import tempfile
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tracehunch.engines.memory import budget_bytes, foreseen_bytes, processors, refusal
from tracehunch.engines.sharing import Sharing
from tracehunch.engines.task import lost, short, unread
from tracehunch.errors import TracehunchError
from tracehunch.trace.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tracehunch.compare.ranks.model import Examined
    from tracehunch.engines.task import Work
    from tracehunch.trace.discover import Source

ANSWER_S: Final = 5
"""A scheduler that does not answer in so many seconds is not there."""

WORKERS_S: Final = 60
"""A cluster may start its first worker when there is work; longer is not waited for."""

_POLL_S: Final = 0.02


def run(
    sources: Sequence[Source],
    work: Work,
    *,
    workers: int | None,
    scheduler: str | None,
    max_memory: int | None,
    progress: Callable[[float], None] | None,
    tell: Callable[[str], None],
) -> list[Examined]:
    """Examine every file; see ``tracehunch.engines.run``."""
    done: dict[int, Examined] = {}
    if scheduler is None:
        allowed = budget_bytes(max_memory)
        done |= {at: no for at, one in enumerate(sources) if (no := refusal(one, allowed))}
    left = [at for at in range(len(sources)) if at not in done]

    shared = Sharing()

    def note(at: int, one: Examined) -> None:
        done[at] = shared.of(one)
        if progress is not None:
            progress(len(done) / len(sources))

    with _client(scheduler, [sources[at] for at in left], workers, max_memory) as client:
        _say_versions(client, tell)
        died = list(_round(client, sources, left, work, note))
        for at in died:  # alone: a task that shares its worker is blamed with it
            if list(_round(client, sources, [at], work, note)):
                note(at, lost(sources[at]))
    return [done[at] for at in range(len(sources))]


def _round(
    client: Any,
    sources: Sequence[Source],
    left: Sequence[int],
    work: Work,
    note: Callable[[int, Examined], None],
) -> Iterator[int]:
    """Note what comes; yield the files whose workers died, as often as the scheduler lets them."""
    from distributed import KilledWorker, as_completed  # noqa: PLC0415 - an extra

    futures = {client.submit(work, sources[at], pure=False): at for at in left}
    at_of = {future.key: at for future, at in futures.items()}
    waiting = as_completed(list(futures), with_results=True, raise_errors=False, loop=client.loop)
    futures.clear()  # a result is let go once it is here
    for future, result in _finished(client, waiting):
        at = at_of[future.key]
        if future.status == "finished":
            note(at, result)
        elif future.status != "error":
            raise _gone(client)
        elif isinstance(result[1], KilledWorker):
            yield at
        else:
            note(at, _failed(sources[at], result[1]))


def _finished(client: Any, waiting: Any) -> Iterator[tuple[Any, Any]]:
    """Yield futures as they finish, while there is a scheduler, and a worker now or soon."""
    seen = time.monotonic()
    while waiting.count():
        if waiting.has_ready():
            yield from waiting.next_batch(block=False)
            seen = time.monotonic()
            continue
        time.sleep(_POLL_S)
        if client.status != "running":
            raise _gone(client)
        if time.monotonic() - seen < 1:
            continue
        if client.nthreads():
            seen = time.monotonic()
        elif time.monotonic() - seen > WORKERS_S:
            raise TracehunchError(
                f"the Dask cluster at {_address(client)} has no workers",
                f"none came in {WORKERS_S} seconds",
                "start some: dask worker ADDRESS",
            )


def _failed(source: Source, error: BaseException) -> Examined:
    if isinstance(error, MemoryError):
        return short(source)
    return unread(source, "could not be examined", f"on its worker: {type(error).__name__}: {error}")


@contextmanager
def _client(
    scheduler: str | None, sources: Sequence[Source], workers: int | None, max_memory: int | None
) -> Iterator[Any]:
    """Connect to the scheduler that was named, or to a cluster of our own that ends with the work."""
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
        from distributed.comm import get_address_host_port  # noqa: PLC0415 - as above
    except ImportError:
        raise TracehunchError(
            "the engine dask needs the package distributed",
            "it is not installed",
            "pip install 'tracehunch[dask]', or --engine local",
        ) from None
    with _quiet(), _scheduler(scheduler, sources, workers, max_memory) as address:
        try:
            if isinstance(address, str):
                get_address_host_port(address)  # a client that was never made complains when it is gone
            client = Client(address, timeout=ANSWER_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise _no_scheduler(str(scheduler), error) from None
        with client:
            yield client


def _no_scheduler(address: str, error: Exception) -> TracehunchError:
    what = "is no address" if isinstance(error, ValueError) else "does not answer"
    return TracehunchError(
        f"the Dask scheduler {printable(address)} {what}",
        printable(str(error).splitlines()[0] if str(error) else type(error).__name__, 200),
        "give tcp://HOST:8786; without --scheduler a cluster is started here",
    )


@contextmanager
def _scheduler(
    scheduler: str | None, sources: Sequence[Source], workers: int | None, max_memory: int | None
) -> Iterator[Any]:
    if scheduler is not None:
        yield scheduler
        return
    import dask  # noqa: PLC0415 - an extra
    from distributed import LocalCluster  # noqa: PLC0415 - an extra

    count = max(min(workers or processors(), len(sources)), 1)
    allowed = budget_bytes(max_memory)
    settings = {"distributed.scheduler.allowed-failures": 1, "logging.distributed": "critical"}
    memory = max(allowed // count, *map(foreseen_bytes, sources)) if allowed else 0
    with tempfile.TemporaryDirectory(prefix="tracehunch-") as scratch, dask.config.set(settings):
        with _deaf():
            cluster = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                memory_limit=memory,
                dashboard_address="127.0.0.1:0",
                local_directory=scratch,
                silence_logs=logging.CRITICAL,
            )
        with cluster:
            yield cluster


@contextmanager
def _deaf() -> Iterator[None]:
    """Ignore Ctrl-C while a cluster starts: it would be left half-made. Its workers then ignore it, too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to ourselves what the package logs about lost workers: the results say it.

    After a failure, or Ctrl-C, it logs on while the process ends, so it stays quiet then.
    """
    named = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    loggers = [logging.getLogger(name) for name in (*named, "asyncio")]  # each has a level of its own
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def _say_versions(client: Any, tell: Callable[[str], None]) -> None:
    """Tell where workers run another Python or another version of this package."""
    here = {"Python": platform.python_version(), "tracehunch": importlib.metadata.version("tracehunch")}
    asked: dict[str, tuple[Any, ...]] = {
        "Python": (platform.python_version,),
        "tracehunch": (importlib.metadata.version, "tracehunch"),
    }
    for name, call in asked.items():
        there = client.run(*call, on_error="return").values()
        others = sorted({_version(one) for one in there} - {here[name]})
        if others:
            tell(f"workers have {name} {', '.join(others)}, here is {here[name]}: results may differ")


def _version(answer: object) -> str:
    return answer if isinstance(answer, str) else "not installed"


def _gone(client: Any) -> TracehunchError:
    return TracehunchError(
        f"the Dask scheduler at {_address(client)} went away", "", "start it again, and this command"
    )


def _address(client: Any) -> str:
    return printable(str(getattr(client.scheduler, "address", "its address")))
