"""``ranks``: all ranks of a job, from their files to one answer."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from tracehunch.api.shown_ranks import Ranks, shown
from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.model import Ranks as PlainRanks
from tracehunch.compare.ranks.model import RankSummary
from tracehunch.engines import run
from tracehunch.engines.run import Engine
from tracehunch.engines.task import missed
from tracehunch.engines.tell import untold
from tracehunch.errors import ReadError, TracehunchError
from tracehunch.trace.discover import Discovered, discover
from tracehunch.trace.remote import shown_source
from tracehunch.units import bytes_of

Path = str | os.PathLike[str]


def ranks(
    paths: Path | Sequence[Path],
    *,
    engine: Engine = "local",
    workers: int | None = None,
    scheduler: str | None = None,
    max_memory: int | str | None = None,
    progress: Callable[[float], None] | None = None,
    tell: Callable[[str], None] = untold,
) -> Ranks:
    """Put all ranks of a job together: who waits for whom, what is exposed, which rank is unlike others.

    The answer shows itself as ``look``'s does: ``print()``, ``to_json()``, by itself in a notebook and with
    rich. Its attributes hold times in nanoseconds, but those whose names end in ``_us``; JSON has
    microseconds.

    ``paths`` are traces, folders, patterns, or URLs of these. ``engine`` is ``"local"`` (processes of this
    machine) or ``"dask"`` (the cluster of ``scheduler``, or one that is started here); every engine gives the
    same answer. ``workers`` defaults to what processors and memory allow; ``max_memory``, bytes or a size
    such as ``"8GB"``, is for all workers of this machine together. ``progress`` gets the share done, 0 to 1;
    ``tell`` gets remarks, such as workers of another version.

    Raises:
        ReadError: no file could be read; where only some could not, ``Ranks.unread`` says which and why.
        TracehunchError: ``max_memory`` is no size, the engine is not installed, or its scheduler cannot be
            reached.

    """
    asked = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found = discover(asked)
    examined = run(
        found.sources,
        engine=engine,
        workers=workers,
        scheduler=scheduler,
        max_memory=_bytes(max_memory),
        progress=progress,
        tell=tell,
    )
    examined += [missed(one) for one in found.missed]
    together = compare(examined)
    if not any(isinstance(one, RankSummary) for one in examined):
        raise _nothing(together, found, [shown_source(path) for path in asked])
    whole = replace(together, notices=(*together.notices, *found.notices))
    return shown(whole, tuple(shown_source(path) for path in asked))


def _bytes(size: int | str | None) -> int | None:
    if not isinstance(size, str):
        return size
    given = bytes_of(size)
    if given is None:
        raise TracehunchError(f"max_memory={size!r} is no size", "", "write it as 8GB, 512 MiB or 2.5g")
    return given


def _nothing(together: PlainRanks, found: Discovered, names: Sequence[str]) -> ReadError:
    """Return the error of a job of which nothing could be read, with the first reason."""
    todo = "give the traces of all ranks, or a folder of them"
    if not together.unread:
        why = "; ".join(notice.message for notice in found.notices) or "there is no file"
        return ReadError(f"no trace in {', '.join(names) or 'nothing'}", why, todo)
    first, more = together.unread[0], len(together.unread) - 1
    others = f" (and {more:,} more could not be read)" if more else ""
    said = "; " in first.why  # what to do
    return ReadError(f"{first.source}: {first.what}", first.why + others, "" if said else todo)
