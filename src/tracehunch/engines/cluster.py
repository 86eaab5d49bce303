"""The cluster of the Dask engine: the one that was named, if a scheduler answers there, or one of our own."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tracehunch.engines import local_cluster
from tracehunch.engines.memory import budget_bytes, foreseen_bytes
from tracehunch.errors import TracehunchError
from tracehunch.trace.processors import processors
from tracehunch.trace.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.trace.discover import Source

ANSWER_S: Final = 5
"""A scheduler that does not answer in so many seconds is not there."""

_OWN_S: Final = 60
"""One that was started here is: this machine may be busy."""


@contextmanager
def connected(
    scheduler: str | None, sources: Sequence[Source], workers: int | None, max_memory: int | None
) -> Iterator[Any]:
    """Connect to the scheduler that was named, or to a cluster of our own that ends with the work."""
    try:
        from distributed import Client  # noqa: PLC0415 - an extra
    except ImportError:
        raise TracehunchError(
            "the engine dask needs the package distributed",
            "it is not installed",
            "pip install 'tracehunch[dask]', or --engine local",
        ) from None
    with _quiet():
        if scheduler is not None:
            _probe(scheduler)  # a client that was never made complains, at length, when it is gone
        with _scheduler(scheduler, sources, workers, max_memory) as address:
            try:
                patience_s = _OWN_S if scheduler is None else ANSWER_S
                client = Client(address, timeout=patience_s, set_as_default=False)
            except (OSError, TimeoutError, ValueError) as error:
                raise _no_scheduler(str(scheduler), "does not answer", error) from None
            with client:
                yield client


def _probe(address: str) -> None:
    """Ask what is at an address for what it is. Raises TracehunchError where it is no scheduler."""
    from distributed.comm import get_address_host_port  # noqa: PLC0415 - an extra

    try:
        get_address_host_port(address)
    except ValueError as error:
        raise _no_scheduler(address, "is no address", error) from None
    answers: queue.SimpleQueue[dict[str, Any] | BaseException] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(asyncio.run(_identity(address)))
        except BaseException as error:  # noqa: BLE001  # bytes of a stranger are read: of any kind
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()  # here may be a loop, as in a notebook
    try:
        answer = answers.get(timeout=ANSWER_S + 3)
    except queue.Empty:
        answer = TimeoutError()
    if isinstance(answer, OSError | TimeoutError):
        raise _no_scheduler(address, "does not answer", answer)
    if isinstance(answer, BaseException):
        raise _no_scheduler(address, "is none", answer)
    if (kind := str(answer.get("type"))) in ("Worker", "Nanny"):
        raise _no_scheduler(address, "is none", TypeError(f"a Dask {kind.lower()} answers there"))


async def _identity(address: str) -> dict[str, Any]:
    from distributed.core import rpc  # noqa: PLC0415 - an extra
    from distributed.security import Security  # noqa: PLC0415 - as above

    arguments = Security().get_connection_args("client")
    async with (
        asyncio.timeout(ANSWER_S + 1),
        rpc(address, timeout=ANSWER_S, connection_args=arguments) as peer,
    ):
        identity: dict[str, Any] = await peer.identity()
        return identity


def _no_scheduler(address: str, what: str, error: BaseException) -> TracehunchError:
    lines = str(error).strip().splitlines() or [f"nothing came for {ANSWER_S:g} seconds"]
    return TracehunchError(
        f"the Dask scheduler {printable(address) or repr(address)} {what}",
        "what answers there speaks another language"
        if isinstance(error, MemoryError)
        else printable(lines[0], 200),
        "give tcp://HOST:8786; without --scheduler a cluster is started here",
    )


@contextmanager
def _scheduler(
    scheduler: str | None, sources: Sequence[Source], workers: int | None, max_memory: int | None
) -> Iterator[str]:
    if scheduler is not None:
        yield scheduler
        return
    count = max(min(workers or processors(), len(sources)), 1)
    allowed = budget_bytes(max_memory)
    memory = max(allowed // count, *map(foreseen_bytes, sources)) if allowed else 0
    with local_cluster.started(count, memory) as address:
        yield address


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
