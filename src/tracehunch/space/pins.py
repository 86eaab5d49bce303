"""``requirements.txt``: every package in one version."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from tracehunch.errors import TracehunchError

if TYPE_CHECKING:
    from collections.abc import Mapping

_INDEX: Final = "https://download.pytorch.org/whl"
_RELEASE: Final = re.compile(r"\d+(\.\d+)+((a|b|rc)\d+)?(\.post\d+)?")
"""A version that an index has: none of a working copy, none with a local part."""

_TORCH: Final = re.compile(r"(\d+)\.(\d+)\.\d+")
_CUDA: Final = re.compile(r"cu\d{3}")
_TABLES: Final[Mapping[str, Any]] = tomllib.loads(
    (files(__package__) / "pins.toml").read_text(encoding="utf-8")
)


def torch_build(version: str, *, gpu: bool, cuda: str | None) -> str:
    """Return the build of torch to install, as ``2.13.0+cu126``.

    Raises:
        TracehunchError: no release, or no build for CUDA is known.

    """
    found = _TORCH.fullmatch(version)
    if found is None:
        raise TracehunchError(
            f"--torch {version} is no release",
            "it takes three numbers, without a local part",
            "try --torch 2.13.0",
        )
    minor, known = (int(found[1]), int(found[2])), _TABLES["cuda"]
    if minor < _numbers(known["oldest"]):
        raise TracehunchError(
            f"torch {version} is too old for a Space", "", f"take {known['oldest']} or newer"
        )
    if not gpu:
        if cuda is not None:
            raise TracehunchError(
                "--cuda goes with a GPU", "this hardware has none", "choose another --hardware"
            )
        return f"{version}+cpu"
    if cuda is None and minor > _numbers(known["newest"]):
        raise TracehunchError(
            f"for which CUDA torch {version} is built is not known here", "", "say it, as --cuda cu130"
        )
    if cuda is not None and not _CUDA.fullmatch(cuda):
        raise TracehunchError(f"--cuda {cuda} names no build", "", "write it as cu126 or cu130")
    return f"{version}+{cuda or known['default']}"


def requirements(torch: str, extra: Mapping[str, str], *, header: str) -> str:
    """Return the file: `torch` as ``torch_build`` says, `extra` as package -> version."""
    pins = {
        name: _version(name, known) for name, known in {**_TABLES["tracehunch"], **_TABLES["torch"]}.items()
    }
    pins |= {**_TABLES["fixed"], **_TABLES["builds"].get(torch, {}), **extra}
    lines = [
        f"# {header}",
        f"--extra-index-url {_INDEX}/{torch.rpartition('+')[2]}",
        f"torch=={torch}",
        *(f"{name}=={version}" for name, version in sorted(pins.items())),
    ]
    return "\n".join(lines) + "\n"


def _version(name: str, known: str) -> str:
    """Return the version installed here, if it is a release; else the known one."""
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return known
    foreign = installed.read_text("direct_url.json") is not None
    return known if foreign or not _RELEASE.fullmatch(installed.version) else installed.version


def _numbers(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)
