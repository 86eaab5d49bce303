"""The Dask engine: files on the workers of a cluster, which read them where they are."""

from __future__ import annotations

import importlib.metadata
import platform
import queue
import threading
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tracehunch.compare.ranks.model import RankSummary, Unread
from tracehunch.engines.cluster import ANSWER_S, connected
from tracehunch.engines.memory import budget_bytes, refusal
from tracehunch.engines.sharing import Sharing
from tracehunch.engines.task import lost, short, unread
from tracehunch.errors import TracehunchError
from tracehunch.trace.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tracehunch.compare.ranks.model import Examined
    from tracehunch.engines.task import Work
    from tracehunch.trace.discover import Source

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

    with connected(scheduler, [sources[at] for at in left], workers, max_memory) as client:
        if scheduler is not None:  # workers of our own are as this process is
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
        if isinstance(result, RankSummary | Unread):  # the future may be lost again by now, with its worker
            note(at, result)
        elif not isinstance(result, tuple):  # cancelled
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
        for one in _unheard(waiting):
            yield one
            seen = time.monotonic()
        if client.nthreads():
            seen = time.monotonic()
        elif time.monotonic() - seen > WORKERS_S:
            raise TracehunchError(
                f"the Dask cluster at {_address(client)} has no workers",
                f"none came in {WORKERS_S} seconds",
                "start some: dask worker ADDRESS",
            )


def _unheard(waiting: Any) -> Iterator[tuple[Any, Any]]:
    """Take what nothing announces: where fetching a result failed, the package lets go of it silently."""
    with waiting.lock:
        ended = [future for future in waiting.futures if future.status in ("error", "finished")]
    for future in ended:
        try:
            result = future.result(timeout=ANSWER_S)
        except (OSError, TimeoutError):  # its worker went away: it is computed again, and asked for again
            continue
        except Exception as error:  # noqa: BLE001  # what the task raised, or what cannot be unpickled here
            result = (type(error), error, None)
        with waiting.lock:
            unheard = waiting.futures.pop(future, None)
        if unheard:
            yield future, result


def _failed(source: Source, error: BaseException) -> Examined:
    if isinstance(error, MemoryError):
        return short(source)
    return unread(source, "could not be examined", f"on its worker: {type(error).__name__}: {error}")


def _say_versions(client: Any, tell: Callable[[str], None]) -> None:
    """Tell where workers run another Python or another version of this package."""
    here = {"Python": platform.python_version(), "tracehunch": importlib.metadata.version("tracehunch")}
    asked: dict[str, tuple[Any, ...]] = {
        "Python": (platform.python_version,),
        "tracehunch": (importlib.metadata.version, "tracehunch"),
    }
    for name, call in asked.items():
        there = _everywhere(client, call)
        if there is None:
            tell("some workers do not answer: what they are at is waited for")
            return
        others = sorted({_version(one) for one in there} - {here[name]})
        if others:
            tell(f"workers have {name} {', '.join(others)}, here is {here[name]}: results may differ")


def _everywhere(client: Any, call: tuple[Any, ...]) -> list[object] | None:
    """Return what each worker answers; None where one says nothing, for which the client would wait."""
    answers: queue.SimpleQueue[list[object]] = queue.SimpleQueue()

    def ask() -> None:
        with suppress(OSError, RuntimeError, CancelledError):  # the cluster, or the client, went away
            answers.put(list((client.run(*call, on_error="return") or {}).values()))

    threading.Thread(target=ask, daemon=True).start()
    try:
        return answers.get(timeout=ANSWER_S)
    except queue.Empty:
        return None


def _version(answer: object) -> str:
    return answer if isinstance(answer, str) else "not installed"


def _gone(client: Any) -> TracehunchError:
    return TracehunchError(
        f"the Dask scheduler at {_address(client)} went away", "", "start it again, and this command"
    )


def _address(client: Any) -> str:
    return printable(str(getattr(client.scheduler, "address", "its address")))
