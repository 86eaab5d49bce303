"""``tracehunch guess module:function``: what the GPU trace of a whole program should show, with no GPU."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tracehunch.cli import common
from tracehunch.cli.guess_options import environment_of, installed_environment_options
from tracehunch.cli.options import debug_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.predict.environment import Environment
    from tracehunch.predict.program.model import ProgramGuess

FORMATS: Final = {
    "terminal": (".txt",),
    "json": (".json",),
    "markdown": (".md", ".markdown"),
    "html": (".html", ".htm"),
    "toml": (".toml",),
}
"""Output format -> the file extensions that ask for it."""

_VENDORS: Final = ("NVIDIA ", "AMD ", "TESLA ")
"""How a GPU's name begins where it is given as traces have it."""

_HIDING: Final = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Set to nothing, they hide a machine's GPUs from the drivers."""

_REFUSALS: Final = "torch._subclasses.fake_tensor"
"""The logger of ops without data, which writes a traceback for each that fails."""


@click.command("MODULE:FUNCTION")
@click.argument("target", metavar="MODULE:FUNCTION")
@installed_environment_options
@click.option("--compile", "compiled", is_flag=True, help="As torch.compile would run it.")
@click.option(
    "--values",
    is_flag=True,
    help="Run on the CPU with real numbers: slower, but branches go where the numbers send them.",
)
@click.option(
    "--scope",
    default="step",
    show_default=True,
    metavar="NAME",
    help="In a hunch.toml, what a run is called in the trace.",
)
@click.option("--top", type=click.IntRange(min=1), default=12, show_default=True, help="Ops that are listed.")
@click.option("--format", "output_format", type=click.Choice(tuple(FORMATS)), help="Default: terminal.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to FILE; its extension (.txt, .json, .md, .html, .toml) picks the format.",
)
@debug_option
def program(
    *,
    target: str,
    gpu: str,
    torch_version: str,
    cudnn: int | None,
    compiled: bool,
    values: bool,
    scope: str,
    top: int,
    output_format: str | None,
    output: Path | None,
) -> int:
    """Run a function once, without a GPU, and predict what its GPU trace will show.

    FUNCTION takes no arguments and returns (callable, args, kwargs), or a callable alone: what a step of the
    program calls, a model's forward or a whole training step. Its tensors hold no numbers, so that a model
    of any size is made at once. MODULE is a module's name, or a file: train.py:make_step.
    """
    chosen = common.pick_format(output_format, output, FORMATS)
    # what the program prints is no part of the guess
    with _gpus_hidden(), _quiet_refusals(), redirect_stdout(sys.stderr):
        torch_version = torch_version or _installed()
        env = environment_of(gpu, torch_version, cudnn)
        guess = _guess(target, env, compiled=compiled, values=values)
    if chosen == "json":
        from tracehunch.report import program_json  # noqa: PLC0415  # loads only if used

        common.emit(program_json.render(guess), output)
    elif chosen == "markdown":
        from tracehunch.report import program_markdown  # noqa: PLC0415  # as above

        common.emit(program_markdown.render(guess, top=top), output)
    elif chosen == "html":
        from tracehunch.report.html import program_page  # noqa: PLC0415  # as above

        following = _next(target, gpu, torch_version, compiled=compiled, values=values)
        common.emit(program_page.render(guess, next_command=following), output)
    elif chosen == "toml":
        from tracehunch.report import program_hunch  # noqa: PLC0415  # as above

        device = gpu.strip() if gpu.strip().upper().startswith(_VENDORS) else None
        version = torch_version.strip() if "+" in torch_version else None
        common.emit(program_hunch.render(guess, scope, device=device, torch=version), output)
    else:
        from tracehunch.report import program_text  # noqa: PLC0415  # as above

        following = _next(target, gpu, torch_version, compiled=compiled, values=values)
        common.emit(program_text.render(guess, common.view(output), top=top, next_command=following), output)
    return common.FINE


def _guess(target: str, env: Environment, *, compiled: bool, values: bool) -> ProgramGuess:
    if compiled:
        from tracehunch.capture.compiled import record_compiled  # noqa: PLC0415  # loads torch
        from tracehunch.predict.program.compiled_guess import guess_compiled  # noqa: PLC0415  # as below

        return guess_compiled(record_compiled(target, env=env, values=values), env)
    from tracehunch.capture.program import record_program  # noqa: PLC0415  # loads torch
    from tracehunch.predict.program import guess_program  # noqa: PLC0415  # tables load if used

    recorded = record_program(target, env=env, values=values, warmup=1, progress=_tell)
    return guess_program(recorded, env)


@contextmanager
def _gpus_hidden() -> Iterator[None]:
    """Leave this machine's GPUs alone, which another job may fill: a driver reads this when first used."""
    before = {name: os.environ.get(name) for name in _HIDING}
    os.environ.update(dict.fromkeys(_HIDING, ""))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _quiet_refusals() -> Iterator[None]:
    """Keep out of the way what torch logs of an op that refuses its inputs: the error says it in a line."""
    log = logging.getLogger(_REFUSALS)
    log.addFilter(_never)
    try:
        yield
    finally:
        log.removeFilter(_never)


def _never(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.CRITICAL


def _installed() -> str:
    """Return the installed version of torch without its build, which need not be for a GPU."""
    from tracehunch.capture.torch_env import import_torch  # noqa: PLC0415  # only a guess of a program needs it

    return str(import_torch().__version__).partition("+")[0]


def _tell(what: str) -> None:
    """Say what goes on where a person waits for it."""
    if sys.stderr is not None and sys.stderr.isatty():
        common.note(f"{what}, with no GPU ...")


def _next(target: str, gpu: str, torch_version: str, *, compiled: bool, values: bool) -> str:
    """Return the command that writes the guess for `check`."""
    options = ["--gpu", gpu, "--torch", torch_version]
    options += ["--compile"] * compiled + ["--values"] * values
    return shlex.join(["tracehunch", "guess", target, *options, "-o", "hunch.toml"])
