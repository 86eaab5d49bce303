"""``tracehunch space``: a Hugging Face Docker Space that runs ``tracehunch attention`` on its hardware."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from tracehunch import __version__
from tracehunch.attention.workload import Workload, check
from tracehunch.cli.attention import CPU_SHAPE, GPU_SHAPE, attention
from tracehunch.cli.common import FINE, emit
from tracehunch.cli.options import debug_option
from tracehunch.space import HARDWARE, Space, contents, has_gpu, known, torch_build, write

if TYPE_CHECKING:
    from collections.abc import Mapping

_PASSED: Final = ("wanted", "batch", "heads", "kv_heads", "seq", "head_dim", "dtype", "causal", "steps")
_PASSED_TOO: Final = ("warmup", "verify")
"""Parameters of ``attention`` that a Space passes on: what is measured, not where and how it is shown."""


@click.command("space")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--hardware",
    default="cpu-basic",
    show_default=True,
    metavar="NAME",
    help=f"What the Space is to run on: {', '.join(HARDWARE)}.",
)
@click.option("--torch", default="2.13.0", show_default=True, metavar="VERSION", help="PyTorch to install.")
@click.option("--cuda", metavar="BUILD", help="Its build for a GPU, as cu126 or cu130.  [default: cu126]")
@click.option("--title", default="tracehunch attention", show_default=True, help="The Space's title.")
@click.option(
    "--from-pypi", is_flag=True, help="Install tracehunch from PyPI; else the Space carries this one's files."
)
@click.option("--force", is_flag=True, help="Write again what was written to DIR before.")
@debug_option
@click.pass_context
def space(
    ctx: click.Context,
    /,
    *,
    folder: Path,
    hardware: str,
    torch: str,
    cuda: str | None,
    title: str,
    from_pypi: bool,
    force: bool,
    **measured: Any,
) -> int:
    """Write a Hugging Face Docker Space into DIR, which is new or empty.

    Put on any hardware, the Space runs 'tracehunch attention' there, with the options below, and serves the
    report and its traces. Nothing is uploaded: the commands that do are printed.
    """
    gpu = has_gpu(known(hardware))
    _check_sizes(measured, gpu=gpu)
    build = torch_build(torch, gpu=gpu, cuda=cuda)
    wanted = Space(title, hardware, build, __version__, _passed_on(ctx), from_pypi=from_pypi)
    files = contents(wanted)
    write(folder, files, force=force)
    emit(_told(folder, wanted, len(files)), None)
    return FINE


def _is_passed(parameter: click.Parameter) -> bool:
    return parameter.name in (*_PASSED, *_PASSED_TOO)


space.params[-2:-2] = [one for one in attention.params if _is_passed(one)]


def _passed_on(ctx: click.Context) -> tuple[str, ...]:
    """Write the options of ``attention`` that were given, as they are typed."""
    words: list[str] = []
    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(str(parameter.name)) == ParameterSource.COMMANDLINE
        if not _is_passed(parameter) or not given:
            continue
        value = ctx.params[str(parameter.name)]
        if isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
        else:
            values = value if isinstance(value, tuple) else (value,)
            words += [word for one in values for word in (parameter.opts[0], str(one))]
    return tuple(words)


def _check_sizes(measured: Mapping[str, Any], *, gpu: bool) -> None:
    """Raise here what ``attention`` would raise there."""
    names = ("batch", "heads", "kv_heads", "seq", "head_dim")
    given = {name: measured[name] for name in names if measured[name] is not None}
    shape = {**(GPU_SHAPE if gpu else CPU_SHAPE), **given}
    check(Workload(**{"kv_heads": shape["heads"], **shape}))


def _told(folder: Path, space: Space, number: int) -> str:
    """Say what was written, and what to do with it."""
    there = shlex.quote(str(folder))
    origin = "from PyPI" if space.from_pypi else "its own files"
    hardware = f"{space.hardware} ({HARDWARE[space.hardware]})" if has_gpu(space.hardware) else space.hardware
    return f"""\
{folder}: {number} files of a Docker Space for {hardware}
  runs  {space.command}
  with  torch {space.torch}, tracehunch {origin}

Nothing was uploaded. Next, with USER/NAME for the Space's name:
  hf repos create USER/NAME --type space --space-sdk docker
  hf upload USER/NAME {there} . --type space
  hf spaces settings USER/NAME --hardware {space.hardware}
"""
