"""``tracehunch run SCRIPT ARGS``: a script under the profiler, with no edit, then a look at its trace."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from tracehunch.cli import common
from tracehunch.cli.closing import Closing, Wanted
from tracehunch.cli.options import FAIL_ON, all_option, debug_option, output_options
from tracehunch.errors import TracehunchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.capture.script import Program
    from tracehunch.capture.script.finder import Kind

KINDS: Final = ("auto", "optimizer", "forward", "whole")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What to record."""

    skip: int
    warmup: int
    steps: int
    shapes: bool
    stacks: bool
    memory: bool


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option("-m", "is_module", is_flag=True, help="Run a module, as python -m does.")
@click.option(
    "-t",
    "--trace",
    type=click.Path(),  # as text: a slash at its end makes it a folder
    metavar="PATH",
    help="File (.json.gz, .json) or folder for the trace.  [default: tracehunch-SCRIPT.json.gz]",
)
@click.option("--by", type=click.Choice(KINDS), default="auto", show_default=True, help="What a step is.")
@click.option("--skip", type=click.IntRange(min=0), default=2, show_default=True, help="Steps to let pass.")
@click.option(
    "--warmup", type=click.IntRange(min=0), default=1, show_default=True, help="Then steps to warm up in."
)
@click.option(
    "--steps", type=click.IntRange(min=1), default=3, show_default=True, help="Then steps to record."
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Record no longer than this.  [default: 60 for steps, 5 for a script as a whole]",
)
@click.option("--shapes/--no-shapes", default=True, show_default=True, help="Record the shapes of tensors.")
@click.option("--stacks", is_flag=True, help="Record Python's stacks: modules and lines; slower, larger.")
@click.option("--memory", is_flag=True, help="Record allocations.")
@click.option("--no-look", is_flag=True, help="Only write the trace.")
@click.option(
    "--guess", "hunch", type=click.Path(path_type=Path), metavar="HUNCH", help="Check a hunch.toml."
)
@output_options
@all_option
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    help="Exit with 1 on a surprise or finding this severe.  [default: never; with --guess, warning]",
)
@click.option("--strict", is_flag=True, help="Exit with 3 if data was lost, or a claim cannot be told.")
@debug_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def run(  # noqa: PLR0917  # click passes all by name
    command: tuple[str, ...],
    is_module: bool,
    trace: str | None,
    by: str,
    skip: int,
    warmup: int,
    steps: int,
    max_seconds: float | None,
    shapes: bool,
    stacks: bool,
    memory: bool,
    no_look: bool,
    hunch: Path | None,
    output_format: str | None,
    output: Path | None,
    all_findings: bool,
    fail_on: str | None,
    strict: bool,
) -> int:
    """Run SCRIPT as python would, record a few of its steps, and look at them.

    Steps are found by themselves: optimizer steps, else calls of the outermost model, else the whole script
    is one. After the last step to record the profiler is gone, and the script runs on at full speed.

    Standard output is the script's alone: what is found goes to standard error, or to a file with -o. The
    exit code is the script's; if that is 0, that of 'tracehunch look', or with --guess of 'tracehunch check'.

    What follows SCRIPT is for the script; put options for tracehunch before it. In a job of several
    processes, as in 'torchrun --no-python tracehunch run SCRIPT', each rank writes its trace and rank 0
    looks.
    """
    if not command:
        raise click.UsageError("no script given; name one, or -m and a module")
    wanted = _wanted(
        output_format, output, hunch, fail_on, all_findings=all_findings, strict=strict, look=not no_look
    )
    asked = _Asked(skip, warmup, steps, shapes, stacks, memory)
    return _run(command, asked, wanted, trace, by, max_seconds, is_module=is_module)


def _wanted(
    output_format: str | None,
    output: Path | None,
    hunch: Path | None,
    fail_on: str | None,
    *,
    all_findings: bool,
    strict: bool,
    look: bool,
) -> Wanted:
    """Sort out what is wrong with the options now, and not after hours of running."""
    picked = common.pick_format(output_format, output)
    if output is None and picked != "terminal":
        raise click.UsageError(f"--format {picked} needs -o FILE: standard output is the script's")
    if not look and (hunch is not None or output is not None or fail_on is not None or strict):
        raise click.UsageError("--no-look leaves nothing to report or check; drop it, or the other option")
    if output is not None and not output.absolute().parent.is_dir():
        raise click.UsageError(f"-o {output}: there is no folder {output.parent}; make it first")
    if hunch is not None:
        from tracehunch.guess.hunch import read_hunch  # noqa: PLC0415  # msgspec loads only where a guess is read

        read_hunch(hunch)
        hunch = hunch.absolute()
    gate = fail_on or ("never" if hunch is None else "warning")
    target = output.absolute() if output is not None else None  # the script may change the folder
    return Wanted(look, hunch, picked, target, all_findings, gate, strict)


def _run(  # noqa: PLR0917  # all from the command line
    command: tuple[str, ...],
    asked: _Asked,
    wanted: Wanted,
    trace: str | None,
    by: str,
    max_seconds: float | None,
    *,
    is_module: bool,
) -> int:
    from tracehunch.capture import script  # noqa: PLC0415  # loaded only where a script is run
    from tracehunch.capture.export import check_place  # noqa: PLC0415  # as above
    from tracehunch.capture.recorder import Recording  # noqa: PLC0415  # as above

    rank = script.rank_here()
    first = rank is None or rank.number == 0
    try:
        program = _found(command[0], is_module=is_module)
    except TracehunchError:
        raise
    except Exception as failure:  # noqa: BLE001  # no Python, or what its package raises: the program's own
        script.show(failure)
        return 1
    path = script.place(trace, program.name, rank)
    check_place(path)
    session = script.Session(
        path,
        Recording(**{name: getattr(asked, name) for name in asked.__slots__}),
        max_seconds=max_seconds,
        only=_kind(by),
        say=_sayer(sys.stderr) if first else _nothing,
    )
    closing = Closing(session, wanted, is_first=first)
    session.begin()
    return closing.after(script.run(program, command[1:]))


def _found(name: str, *, is_module: bool) -> Program:
    from tracehunch.capture import script  # noqa: PLC0415  # as above

    return script.find_module(name) if is_module else script.find_script(name)


def _kind(by: str) -> Kind | None:
    kinds: dict[str, Kind] = {"optimizer": "optimizer", "forward": "forward", "whole": "whole"}
    return kinds.get(by)


def _sayer(stream: TextIO | None) -> Callable[[str], None]:
    """Say things amid the script: not into what it puts in the place of stderr, and not if it closes that."""

    def say(line: str) -> None:
        with suppress(OSError, ValueError):
            common.note(line, stream)

    return say


def _nothing(_: str) -> None:
    """Say nothing: rank 0 does."""
