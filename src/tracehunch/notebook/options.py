"""What may stand behind ``%%hunch``: claims, or where they are, and how the cell is to be run."""

from __future__ import annotations

import argparse
import keyword
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from tracehunch.errors import TracehunchError

SCOPE: Final = "cell"
"""The annotation around each recorded run, and what claims are about unless they say otherwise."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one cell; ``words`` are the claims as they were written."""

    words: tuple[str, ...]
    hunch: Path | None
    scope: str
    steps: int
    warmup: int
    shapes: bool
    stacks: bool
    trace: Path | None
    name: str
    asks: bool


def parse(line: str) -> Options:
    """Read what stands behind the magic.

    Raises:
        TracehunchError: an option that does not exist or has no value, with how it is used.

    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise TracehunchError("%%hunch", str(error).lower(), "put a claim with blanks in quotes") from None
    found, rest = _parser().parse_known_args(words)
    if unknown := [word for word in rest if word.startswith("-")]:
        raise TracehunchError(f"%%hunch has no option {unknown[0]}", "", "%%hunch? lists them")
    if found.guess is not None and rest:
        raise TracehunchError("%%hunch", "claims stand both in the line and in --guess FILE", "keep one")
    return Options(
        words=tuple(rest),
        hunch=found.guess,
        scope=found.scope,
        steps=found.steps,
        warmup=found.warmup,
        shapes=not found.no_shapes,
        stacks=found.stacks,
        trace=found.trace,
        name=found.output or "",
        asks=not (found.no_ask or rest or found.guess),
    )


def usage() -> str:
    """Return the help of ``%%hunch?``."""
    return _parser().format_help()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise TracehunchError("%%hunch", message, "%%hunch? lists the options")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "%%hunch", usage="%%%%hunch [KEY=VALUE ...] [options]", add_help=False, allow_abbrev=False
    )
    add = parser.add_argument
    add("--guess", type=Path, metavar="FILE", help="take the claims of a hunch.toml")
    add(
        "--scope", default=SCOPE, metavar="NAME", help="claim about this annotation, op or module in the cell"
    )
    add("--steps", type=_positive, default=1, metavar="N", help="record N runs of the cell (default 1)")
    add("--warmup", type=_whole, default=0, metavar="N", help="run the cell N times before, unrecorded (0)")
    add("--stacks", action="store_true", help="record Python stacks and modules")
    add("--no-shapes", action="store_true", help="record no shapes of tensors")
    add("--trace", type=Path, metavar="FILE", help="keep the trace (.json or .json.gz)")
    add("-o", "--output", type=_name, metavar="NAME", help="keep what was seen in this variable")
    add("--no-ask", action="store_true", help="do not ask for a guess")
    return parser


def _positive(text: str) -> int:
    return _number(text, 1)


def _whole(text: str) -> int:
    return _number(text, 0)


def _number(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {least}")
    return int(text)


def _name(text: str) -> str:
    if not text.isidentifier() or keyword.iskeyword(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name for a variable")
    return text
