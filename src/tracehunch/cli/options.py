"""Options that verbs share: the same name, the same words, the same meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tracehunch.cli.failures import State
from tracehunch.units import bytes_of

if TYPE_CHECKING:
    _ParamType = click.ParamType[int]
else:
    _ParamType = click.ParamType  # generic from click 8.2 on

Command = TypeVar("Command", bound=Callable[..., Any])

TEXT_FORMATS: Final = {"terminal": (".txt",), "json": (".json",), "markdown": (".md", ".markdown")}
"""Output format -> the file extensions that ask for it."""

PAGE_FORMATS: Final[dict[str, tuple[str, ...]]] = {**TEXT_FORMATS, "html": (".html", ".htm")}
"""Those of verbs that also write a page."""

FORMATS: Final = {**PAGE_FORMATS, "github": ()}
"""Those of verbs that also write workflow commands for GitHub; no extension asks for these."""

FAIL_ON: Final = ("error", "warning", "note", "never")


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    state = ctx.find_root().obj
    if value and isinstance(state, State):
        state.debug = True


debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_set_debug,
    help="Show a traceback when something fails.",
)


def output_options(command: Command) -> Command:
    """``--format``, ``-o/--output``: parameters ``output_format: str | None`` and ``output: Path | None``."""
    return _output_options(command, PAGE_FORMATS)


def outputs_options(command: Command) -> Command:
    """``--format``, and ``-o/--output`` as often as wanted: parameter ``outputs: tuple[Path, ...]``."""
    return _output_options(command, PAGE_FORMATS, repeated=True)


def ci_output_options(command: Command) -> Command:
    """``--format``, ``-o/--output``, with ``--format github`` for a run in GitHub Actions."""
    return _output_options(command, FORMATS)


def _output_options(
    command: Command, formats: Mapping[str, tuple[str, ...]], *, repeated: bool = False
) -> Command:
    command = click.option(
        "-o",
        "--output",
        "outputs" if repeated else "output",
        type=click.Path(dir_okay=False, path_type=Path),
        multiple=repeated,
        metavar="FILE",
        help="Write to FILE; its extension (.txt, .json, .md, .html) picks the format."
        + (" May be repeated." if repeated else ""),
    )(command)
    return click.option(
        "--format", "output_format", type=click.Choice(tuple(formats)), help="Default: terminal."
    )(command)


def all_option(command: Command) -> Command:
    """``--all``: parameter ``all_findings: bool``."""
    return click.option(
        "--all", "all_findings", is_flag=True, help="Show every finding in full, not the eight costliest."
    )(command)


class _Size(_ParamType):
    """Bytes as people write them: ``4GB``, ``512 MiB``, ``2.5g``; a bare number is bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        size = value if isinstance(value, int) else bytes_of(str(value))
        if not size:
            self.fail(f"{value!r} is no size; write it as 4GB or 512MB", param, ctx)
        return size


SIZE: Final = _Size()
"""The type of options that take a size; gives bytes."""


def max_memory_option(command: Command) -> Command:
    """``--max-memory``: parameter ``max_memory: int | None``, in bytes; None: what the machine has free."""
    return click.option(
        "--max-memory",
        type=SIZE,
        metavar="SIZE",
        help="Refuse a trace that needs more memory, such as 4GB, before reading it. Default: what is free.",
    )(command)


def gate_options(default: str) -> Callable[[Command], Command]:
    """``--fail-on`` and ``--strict``: parameters ``fail_on: str`` and ``strict: bool``."""

    def decorate(command: Command) -> Command:
        command = click.option(
            "--strict", is_flag=True, help="Exit with 3 if the file is damaged or data was lost."
        )(command)
        return click.option(
            "--fail-on",
            type=click.Choice(FAIL_ON),
            default=default,
            show_default=True,
            help="Exit with 1 on a surprise or finding of this severity or above.",
        )(command)

    return decorate
