"""Failures in one line on stderr: what, why, what to do; and the exit code that goes with each."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import click

from tracehunch.errors import TracehunchError
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

USAGE: Final = 2
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells count
_ALIKE: Final = 0.7
"""How much two words must have in common for one to be meant by the other."""
BROKEN_PIPE: Final = 141  # 128 + SIGPIPE; not 1, which would mean a finding


class NobodyReadsError(Exception):
    """The other end of the pipe was closed, as ``head`` does."""


@dataclass
class State:
    """What the command line said that matters to failures."""

    debug: bool = False


def tell(failure: BaseException, *, debug: bool) -> int:
    """Print a failure as one line (two at most) and return the exit code."""
    if isinstance(failure, SystemExit):
        return failure.code if isinstance(failure.code, int) else USAGE
    if isinstance(failure, NobodyReadsError):
        _silence_stdout()
        return BROKEN_PIPE
    if debug and not isinstance(failure, click.ClickException):
        traceback.print_exception(failure)
    message, code = _message(failure)
    click.echo(message, err=True)
    return code


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean X?``, or nothing where no known word is close."""
    lower = {one.lower(): one for one in known}
    close = get_close_matches(word.lower(), lower, n=1, cutoff=_ALIKE)
    return f"; did you mean {lower[close[0]]}?" if close else ""


def unknown_verb(word: str, known: Iterable[str]) -> click.UsageError:
    """Return the error for an unknown verb; a file in its place gets the verb that was forgotten."""
    known = list(known)
    if os.path.exists(word):  # noqa: PTH110  # a string from the command line, as it stands
        return click.UsageError(f"{word} is a file, not a verb; did you mean tracehunch look {word}?")
    return click.UsageError(
        f"no verb {word!r}{did_you_mean(word, known) or '; there are ' + ', '.join(known)}"
    )


def _message(failure: BaseException) -> tuple[str, int]:
    if isinstance(failure, TracehunchError):
        return f"tracehunch: {_one_line(str(failure))}", failure.exit_code
    if isinstance(failure, click.ClickException):
        return _usage(failure), USAGE
    if isinstance(failure, click.Abort | KeyboardInterrupt):
        return "tracehunch: interrupted", INTERRUPTED
    return _environment(failure) or _internal(failure), USAGE


def _environment(failure: BaseException) -> str:
    """Return the line for what the machine lacks; "" for anything else."""
    if isinstance(failure, MemoryError):
        return "tracehunch: out of memory; try a shorter recording, or a machine with more"
    if isinstance(failure, OSError) and failure.errno == errno.ENOSPC:
        return "tracehunch: cannot write the result: no space left on the device"
    return ""


def _usage(failure: click.ClickException) -> str:
    if isinstance(failure, click.exceptions.NoArgsIsHelpError):
        return failure.format_message()
    context = getattr(failure, "ctx", None)
    command = context.command_path if context is not None else "tracehunch"
    text = failure.format_message()
    if isinstance(failure, click.NoSuchOption):
        known = (
            [option for one in context.command.params for option in one.opts] if context is not None else []
        )
        text = f"no option {failure.option_name}{did_you_mean(failure.option_name, known)}"
    return f"{command}: {_one_line(text)}\nTry '{command} --help'."


def _internal(failure: BaseException) -> str:
    frames = traceback.extract_tb(failure.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""  # noqa: PTH119  # a path of a traceback, maybe foreign
    said = _one_line(f"{type(failure).__name__}: {failure}")
    todo = "please report it with the file, or run with --debug to see where"
    return f"tracehunch: internal error: {said}{where}; {todo}"


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()), limit=600)


def _silence_stdout() -> None:
    """Nobody reads any more: point stdout at nothing, so that Python's own flush at exit stays quiet too."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # not a real file (a test's buffer), so nothing complains at exit either
        return
