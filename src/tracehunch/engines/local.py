"""The local engine: files in processes of this machine, as many at once as processors and memory allow."""

from __future__ import annotations

import queue
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Final

from tracehunch.engines.child import Child, Died, Short
from tracehunch.engines.memory import budget_bytes, foreseen_bytes, refusal, text_bytes
from tracehunch.engines.queueing import Queueing
from tracehunch.engines.sharing import Sharing
from tracehunch.engines.task import lost, short
from tracehunch.trace.processors import processors

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from tracehunch.compare.ranks.model import Examined
    from tracehunch.engines.task import Work
    from tracehunch.errors import TracehunchError
    from tracehunch.trace.discover import Source

_FILE_S: Final = 0.02
_BYTES_PER_S: Final = 80e6  # of text; benchmarks/ranks.py measures it
_START_S: Final = 1.5  # of a process with numpy and all checks, twice over
_WATCH_S: Final = 0.5  # a wait without end cannot be interrupted everywhere


def run(
    sources: Sequence[Source],
    work: Work,
    *,
    workers: int | None,
    max_memory: int | None,
    progress: Callable[[float], None] | None,
) -> list[Examined]:
    """Examine every file; see ``tracehunch.engines.run``."""
    allowed = budget_bytes(max_memory)
    done: dict[int, Examined] = {
        at: no for at, source in enumerate(sources) if (no := refusal(source, allowed))
    }
    left = [at for at in range(len(sources)) if at not in done]

    shared = Sharing()

    def note(at: int, one: Examined) -> None:
        done[at] = shared.of(one)
        if progress is not None:
            progress(len(done) / len(sources))

    count = min(workers or _worthwhile([sources[at] for at in left]), len(left))
    if count <= 1 or not sys.executable:
        _here(sources, left, work, note)
    else:
        _in_processes(sources, left, work, note, count=count, allowed=allowed, bound=max_memory is not None)
    return [done[at] for at in range(len(sources))]


def _worthwhile(sources: Sequence[Source]) -> int:
    """Return how many processes pay: none where all is done before they have started."""
    foreseen_s = sum(_FILE_S + text_bytes(source) / _BYTES_PER_S for source in sources)
    return processors() if foreseen_s > _START_S else 1


def _here(
    sources: Sequence[Source], left: Iterable[int], work: Work, note: Callable[[int, Examined], None]
) -> None:
    for at in left:
        try:
            note(at, work(sources[at]))
        except MemoryError:
            note(at, short(sources[at]))


def _in_processes(
    sources: Sequence[Source],
    left: Sequence[int],
    work: Work,
    note: Callable[[int, Examined], None],
    *,
    count: int,
    allowed: int | None,
    bound: bool,
) -> None:
    """Examine all at once, then each whose process died or was short of memory once more, alone."""
    failed = []
    needs = {at: foreseen_bytes(sources[at]) for at in left}
    with closing(_round(sources, Queueing(needs, allowed, count), work, count, bound)) as outcomes:
        for at, outcome in outcomes:
            if isinstance(outcome, Died | Short):
                failed.append(at)
            else:
                note(at, outcome)
    needs = {at: needs[at] for at in failed}
    with closing(_round(sources, Queueing(needs, allowed, 1), work, 1, bound)) as outcomes:
        for at, outcome in outcomes:
            note(at, _final(sources[at], outcome))


def _final(source: Source, outcome: Examined | Died | Short) -> Examined:
    if isinstance(outcome, Died):
        return lost(source)
    return short(source) if isinstance(outcome, Short) else outcome


def _round(
    sources: Sequence[Source], queueing: Queueing, work: Work, count: int, bound: bool
) -> Generator[tuple[int, Examined | Died | Short]]:
    """Yield each file's outcome as it comes; whatever ends this ends the processes, too."""
    answers: queue.SimpleQueue[tuple[int, Examined | Died | Short] | TracehunchError] = queue.SimpleQueue()
    children: list[Child] = []

    def drive() -> None:
        child = Child()
        children.append(child)
        while (task := queueing.take()) is not None:
            at, share = task
            outcome = child.ask(work, sources[at], share if bound else None)
            queueing.give_back(at)
            answers.put(outcome if isinstance(outcome, Exception) else (at, outcome))
        child.end()

    threads = [threading.Thread(target=drive, daemon=True) for _ in range(min(count, len(queueing)))]
    expected = len(queueing)
    try:
        for thread in threads:
            thread.start()
        for _ in range(expected):
            answer = _next(answers)
            if isinstance(answer, Exception):
                raise answer
            yield answer
    finally:
        queueing.close()
        for child in children:
            child.end()


def _next(
    answers: queue.SimpleQueue[tuple[int, Examined | Died | Short] | TracehunchError],
) -> tuple[int, Examined | Died | Short] | TracehunchError:
    while True:
        try:
            return answers.get(timeout=_WATCH_S)
        except queue.Empty:
            continue
