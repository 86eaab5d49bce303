"""What verbs share besides options: reading, exit codes, notes, and results written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from tracehunch.cli.failures import did_you_mean
from tracehunch.cli.options import FORMATS
from tracehunch.cli.progress import reading
from tracehunch.errors import TracehunchError
from tracehunch.report.layout import View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.trace.model import Trace
    from tracehunch.verdict import Look

FINE: Final = 0
FOUND: Final = 1
LOST: Final = 3

_NARROWEST: Final = 60  # columns; below, a terminal wraps by itself
_WIDEST: Final = 200


def read_trace(source: str, max_memory: int | None = None) -> Trace:
    """Read a trace with progress on a terminal. ReadError as ``tracehunch.trace.read`` raises it.

    What needs more than ``max_memory`` bytes, else than what is free, is refused before it is read.
    """
    from tracehunch.trace import read  # noqa: PLC0415  # numpy and msgspec load only where a trace is read
    from tracehunch.trace.foresee import free_memory  # noqa: PLC0415  # as above

    with reading(source) as progress:
        return read(source, progress=progress, max_memory=max_memory or free_memory())


def shown_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """Return what a report calls paths and URLs: as the user did, URLs without their secrets."""
    from tracehunch.trace.remote import shown_source  # noqa: PLC0415  # as above

    return tuple(shown_source(path) for path in paths)


def shown_trace(source: str, label: str) -> str:
    """Return what a report calls a trace: for a folder the file that was taken, which ``label`` names."""
    from tracehunch.trace.remote import is_url, shown_url  # noqa: PLC0415  # as above

    path = Path(source)
    return shown_url(source) if is_url(source) else str(path / label) if path.is_dir() else source


def exit_code(look: Look, fail_on: str, *, strict: bool) -> int:
    """0 fine; 1 a finding or surprise at or above ``fail_on``; 3 with ``strict`` if the file was damaged.

    Damage comes first: what was found in a file that lost data may be wrong.
    """
    from tracehunch.verdict import SEVERITIES  # noqa: PLC0415  # msgspec and numpy load with it

    tree = look.facts.tree
    if strict and any(notice.lossy for notice in (*tree.trace.notices, *tree.notices)):
        return LOST
    if fail_on == "never":
        return FINE
    failing = SEVERITIES[SEVERITIES.index(fail_on) :]
    seen = [finding.severity for finding in look.checked.findings]
    seen += [surprise.severity for surprise in look.verdict.surprises]
    return FOUND if any(severity in failing for severity in seen) else FINE


def pick_format(
    output_format: str | None, output: Path | None, formats: Mapping[str, Sequence[str]] = FORMATS
) -> str:
    """Return the format asked for: ``--format``, else that of ``-o``'s extension, else the terminal's."""
    if output_format == "html" and output is None and sys.stdout is not None and sys.stdout.isatty():
        raise click.UsageError("a page on a terminal can only be scrolled past; add -o report.html")
    if output_format is not None or output is None:
        return output_format or "terminal"
    for name, extensions in formats.items():
        if output.suffix.lower() in extensions:
            return name
    known = ", ".join(one for extensions in formats.values() for one in extensions)
    raise click.UsageError(f"{output}: the extension names no format ({known}); give --format")


def view(output: Path | None, *, unknown_width: int = 80) -> View:
    """How wide the output is (``unknown_width`` if nobody says), and if it takes colour and Unicode."""
    if output is not None or sys.stdout is None:  # closed: emit will say so
        return View(width=unknown_width)
    watched = sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))  # who sets a width wants lines that fit
    width = _columns() if watched else unknown_width
    return View(
        width=max(_NARROWEST, min(width, _WIDEST)),
        colour=_wants_colour(),
        unicode=_takes_unicode(sys.stdout.encoding),
        interactive=watched,
    )


def emit_github(commands: str, summary: str) -> None:
    """Write workflow commands to stdout, then Markdown to the step's summary where GitHub names a file.

    Should the summary fail, the annotations are there already.
    """
    from tracehunch.report.cut import SUMMARY_LIMIT, for_summary  # noqa: PLC0415  # loaded only where it is needed

    emit(commands.encode(), None)  # as bytes: these are commands, and shall be
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        try:
            with Path(path).open("ab") as file:
                fitting = for_summary(summary, SUMMARY_LIMIT - file.tell())
                file.write(fitting.encode())
            if not fitting:
                note("the step's summary is full: nothing was added to it")
        except OSError as failure:
            raise TracehunchError(
                "cannot add to the step's summary",
                failure.strerror or str(failure),
                "unset GITHUB_STEP_SUMMARY, or let it name a file that can be written",
            ) from failure


def emit(result: str | bytes, output: Path | None) -> None:
    """Write the result, and nothing else, to stdout or whole to a file; the file's name goes to stderr."""
    if output is None and isinstance(result, str):
        result = _defused(result)
    data = result if isinstance(result, bytes) else None
    if output is not None:
        write_whole(output, data if data is not None else _encoded(str(result), "utf-8"))
        note(f"wrote {output}")
        return
    if sys.stdout is None:
        raise TracehunchError("cannot write the result", "standard output is closed", "choose a file with -o")
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # a replaced stdout (IDE, test) that takes text only
        sys.stdout.write(result if isinstance(result, str) else result.decode())
    else:
        sys.stdout.flush()
        buffer.write(data if data is not None else _encoded(str(result), sys.stdout.encoding))
    sys.stdout.flush()


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: beside its place first, then moved there."""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).chmod(_mode(path))
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as failure:
        raise TracehunchError(
            f"cannot write {path}", failure.strerror or str(failure), "choose another place with -o"
        ) from failure


def note(message: str, stream: TextIO | None = None) -> None:
    """One line on stderr, or on what stood in its place; on a terminal as many as it takes."""
    line = _defused(f"tracehunch: {message}")
    target = stream or sys.stderr
    is_terminal = getattr(target, "isatty", bool)()  # a script may have put anything there
    click.echo(_in_lines(line) if is_terminal else line, target, err=True)


def _in_lines(text: str) -> str:
    """Wrap a line to the terminal between words: what is to be copied stays whole."""
    import textwrap  # noqa: PLC0415  # only where a person watches

    return textwrap.fill(
        text, _columns(), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def unknown_name(what: str, word: str, known: list[str]) -> TracehunchError:
    """Return the error for an unknown name, with the one that was meant, or the first few there are."""
    meant = did_you_mean(word, known).removeprefix("; ")
    there = f"there are {', '.join(known[:8])}{' ...' if len(known) > 8 else ''}" if known else ""
    return TracehunchError(f"no {what} {word!r}", todo=meant or there)


def _mode(path: Path) -> int:
    """Return the permissions of the file being replaced, else what a new file gets here."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _defused(text: str) -> str:
    """Return text for the log of a run in GitHub Actions, which takes some lines for commands."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return text
    from tracehunch.report.github import defused  # noqa: PLC0415  # loaded only where it is needed

    return defused(text)


def _columns() -> int:
    import shutil  # noqa: PLC0415  # slow to import for what it is

    return shutil.get_terminal_size((80, 24)).columns


def _wants_colour() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _takes_unicode(encoding: str | None) -> bool:
    return (encoding or "ascii").lower().replace("-", "").replace("_", "") in (
        "utf8",
        "utf16",
        "utf32",
        "cp65001",
    )


def _encoded(text: str, encoding: str | None) -> bytes:
    is_markdown = text.startswith("<!--")  # where an entity reads as what it stands for
    return text.encode(encoding or "ascii", "xmlcharrefreplace" if is_markdown else "backslashreplace")
