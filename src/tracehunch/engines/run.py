"""``run``: many files -> what each gives, by the engine that was picked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from tracehunch.engines import dask, local
from tracehunch.engines.task import examined
from tracehunch.engines.tell import untold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracehunch.compare.ranks.model import Examined
    from tracehunch.engines.task import Work
    from tracehunch.trace.discover import Source

Engine = Literal["local", "dask"]

ENGINES: Final[tuple[Engine, ...]] = ("local", "dask")


def run(
    sources: Sequence[Source],
    *,
    engine: Engine = "local",
    workers: int | None = None,
    scheduler: str | None = None,
    max_memory: int | None = None,
    progress: Callable[[float], None] | None = None,
    tell: Callable[[str], None] = untold,
    work: Work = examined,
) -> list[Examined]:
    """Examine every file; the results are in the order of ``sources``, whatever the engine.

    A file that cannot be read, or whose worker died twice, gives an ``Unread`` with the reason; the rest goes
    on. ``workers`` defaults to what processors and memory allow. ``max_memory`` is in bytes, for all workers
    together; a worker on another machine has its own. ``scheduler`` is the address of a Dask scheduler; a
    cluster on this machine is started without it. ``progress`` gets the share done, 0 to 1, ``tell`` one line
    at a time for who watches.

    Raises:
        TracehunchError: the engine is not installed, or its scheduler cannot be reached.

    """
    if not sources:
        return []
    if engine == "dask":
        return dask.run(
            sources,
            work,
            workers=workers,
            scheduler=scheduler,
            max_memory=max_memory,
            progress=progress,
            tell=tell,
        )
    return local.run(sources, work, workers=workers, max_memory=max_memory, progress=progress)
