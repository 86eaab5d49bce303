"""Options that the subcommands of ``guess`` share, and the environment that they name."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tracehunch.cli import common
from tracehunch.cli.failures import did_you_mean
from tracehunch.cli.inputs import refuse_to_overwrite
from tracehunch.errors import GuessError, ReadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tracehunch.cli.options import Command
    from tracehunch.hardware import Gpu
    from tracehunch.predict.environment import Environment

_OLDEST_CUDNN: Final = 7000
_NEWEST_CUDNN: Final = 999_999
"""7.0.0 and 99.99.99, as `torch.backends.cudnn.version()` would give them."""

_FOREIGN_BUILDS: Final = {"nvidia": ("cpu", "rocm", "xpu"), "amd": ("cpu", "cu", "xpu")}
"""By a GPU's vendor, how tags of builds begin that do not run on it."""


class _Gpu(click.Option):
    """``--gpu``; who leaves it out is told that it is a name, and that none is needed."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Take the value, or say what to give."""
        try:
            return super().process_value(ctx, value)
        except click.MissingParameter:
            what = "Missing option '--gpu': what to guess for, as --gpu h200; no GPU is needed"
            raise click.UsageError(what, ctx) from None


def environment_options(command: Command) -> Command:
    """``--gpu``, ``--torch``, ``--cudnn``: ``gpu: str``, ``torch_version: str``, ``cudnn: int | None``."""
    return _environment_options(command, torch_required=True)


def installed_environment_options(command: Command) -> Command:
    """Return the same where torch is needed anyway: ``torch_version`` is "" for the installed version."""
    return _environment_options(command, torch_required=False)


def _environment_options(command: Command, *, torch_required: bool) -> Command:
    version = "PyTorch, as 2.11 or 2.11.0+cu130." + ("" if torch_required else "  [default: the installed]")
    presence: dict[str, Any] = {"required": True} if torch_required else {"default": ""}
    command = click.option(
        "--cudnn",
        type=int,
        metavar="N",
        help="As torch.backends.cudnn.version() gives it, 91900.  [default: that of the PyPI wheel]",
    )(command)
    command = click.option("--torch", "torch_version", metavar="VERSION", help=version, **presence)(command)
    return click.option(
        "--gpu",
        required=True,
        cls=_Gpu,
        metavar="NAME",
        help="As h200, a100-80-sxm or 'NVIDIA H100 PCIe'.",
    )(command)


def rows_option(*, required: bool) -> Callable[[Command], Command]:
    """``--rows``: ``rows: str``, or None where it is not required."""
    return click.option(
        "--rows",
        required=required,
        metavar="FILE",
        help="JSON lines to predict, one call a line; - reads them from stdin.",
    )


def environment_of(gpu: str, torch_version: str, cudnn: int | None) -> Environment:
    """Return the environment that the options name.

    Raises:
        GuessError: an unknown GPU or version, with the one that was meant, or all there are; or a build of
            PyTorch that does not run on the GPU.

    """
    from tracehunch.predict.environment import environment  # noqa: PLC0415  # tables load only where they are used

    refuse_odd_cudnn(cudnn)
    found = gpu_of(gpu)
    build = torch_version.partition("+")[2].lower()
    if build.startswith(_FOREIGN_BUILDS.get(found.vendor, ())):
        what = f"torch {torch_version} does not run on {found.name}"
        todo = f"give the version without +{build}, or another GPU"
        raise GuessError(what, f"it is a {build} build", todo)
    if cudnn is not None and found.vendor != "nvidia":
        common.note(f"--cudnn changes nothing: {found.name} runs no cuDNN")
    return environment(found, torch_version, cudnn)


def refuse_odd_cudnn(cudnn: int | None) -> None:
    """Raise for what cannot be a version of cuDNN."""
    if cudnn is not None and not _OLDEST_CUDNN <= cudnn <= _NEWEST_CUDNN:
        raise click.BadParameter(
            f"{cudnn} is no cuDNN version; 9.19.0 is 91900, 8.9.7 is 8907", param_hint="--cudnn"
        )


def gpu_of(name: str) -> Gpu:
    """Return the GPU that --gpu names.

    Raises:
        GuessError: it is not known, with the one that was meant, or all there are.

    """
    from tracehunch.hardware import all_gpus  # noqa: PLC0415  # tables load only where they are used
    from tracehunch.predict.environment import gpu_named  # noqa: PLC0415  # as above

    try:
        return gpu_named(name)
    except GuessError as error:
        keys = [one.key for one in all_gpus()]
        first = Counter(key.split("-")[0] for key in keys)  # a key's first word will do, where it is its own
        words = [*(word for word, number in first.items() if number == 1), *keys]
        meant = "" if "several" in error.what else did_you_mean(name, words).removeprefix("; ")
        raise GuessError(error.what, error.why, f"{meant} {error.todo}" if meant else error.todo) from None


def answer_rows(rows: str, output: Path | None, predict: Callable[[Iterable[str]], Iterator[str]]) -> int:
    """Write each line of a file or of stdin with its prediction; nothing where a line is wrong."""
    if rows != "-":
        refuse_to_overwrite(output, Path(rows))
    answered = [f"{line}\n" for line in predict(_lines(rows))]
    common.emit("".join(answered), output)
    if not answered:
        common.note(f"{'stdin' if rows == '-' else rows} has no lines, so nothing was predicted")
    return common.FINE


def _lines(rows: str) -> list[str]:
    name = "stdin" if rows == "-" else rows
    try:
        if rows != "-":
            data = Path(rows).read_bytes()
        elif sys.stdin is None:  # closed
            raise ReadError("cannot read stdin", "it is closed", "give --rows FILE")
        else:
            data = sys.stdin.buffer.read()
        return data.decode("utf-8-sig").split("\n")
    except OSError as error:
        todo = "give a file of JSON lines, or - for stdin"
        raise ReadError(f"cannot read {name}", error.strerror or str(error), todo) from None
    except UnicodeDecodeError as error:
        at = data.count(b"\n", 0, error.start) + 1
        raise ReadError(f"{name}, line {at}: no UTF-8", "", "give one JSON object a line") from None
