"""The task that every engine runs on each file, and how what went wrong with one file is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from tracehunch.compare.ranks.examine import examine
from tracehunch.compare.ranks.model import Examined, Unread
from tracehunch.errors import ReadError
from tracehunch.trace import remote
from tracehunch.trace.discover import Source
from tracehunch.trace.text import printable

if TYPE_CHECKING:
    from tracehunch.trace.discover import Missed

Work: TypeAlias = Callable[[Source], Examined]
"""What is done with each file; a function of a module, so that other processes can import it."""

_LABEL: Final = 120
_WHY: Final = 300


def examined(source: Source) -> Examined:
    """Return what one file gives, under the name by which it was found; raises MemoryError only."""
    try:
        return replace(examine(source.place), source=source.shown, file_bytes=source.bytes)
    except ReadError as error:
        return unread(source, _unnamed(source, error.what), error.why)
    except MemoryError:  # another try, with more of it, may go better
        raise
    except Exception as error:  # noqa: BLE001  # a defect that one file brings out must not lose the others
        where = _where(error)
        return unread(
            source, "could not be examined", f"{type(error).__name__}: {error}{where}; please report it"
        )


def unread(source: Source, what: str, why: str) -> Unread:
    """Return the entry of a file that gave nothing."""
    return Unread(source.shown, label_of(source.shown), what, printable(why, _WHY), source.bytes)


def lost(source: Source) -> Unread:
    """Return the entry of a file whose worker died, also when nothing else was running."""
    return unread(
        source, "could not be examined", "the process that read it died twice; was it short of memory?"
    )


def short(source: Source) -> Unread:
    """Return the entry of a file that needed more memory than it was given."""
    return unread(source, "needs more memory than there is", "reading it was given up")


def missed(one: Missed) -> Unread:
    """Return the entry of a path that led to no file."""
    return Unread(one.shown, label_of(one.shown), one.what, one.why)


def label_of(shown: str) -> str:
    """Return the last part of a path or URL."""
    return printable(shown.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] or shown, _LABEL)


def _unnamed(source: Source, what: str) -> str:
    """Return an error's text without the file's name, which stands beside it."""
    for name in (printable(remote.without_secrets(source.place), 200), label_of(source.shown)):
        what = what.removeprefix(f"{name}: ")
    return what


def _where(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    name = trace.tb_frame.f_code.co_filename.replace("\\", "/").rsplit("/", 1)[-1]
    return f" ({name}:{trace.tb_lineno})"
