"""The plugin's options and ini keys, all prefixed, and what they mean together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MARKER: Final = "tracehunch"
OPTIONS: Final = ("steps", "warmup", "shapes", "stacks", "memory")
"""Keywords of the marker that say how to record; others are claims, ``scope``, ``why`` or ``confidence``."""

Mode = Literal["", "save", "compare", "update"]

_MARKER_HELP: Final = (
    "tracehunch(scope, **claims): what a profile of the test must show, in the words of hunch.toml, as "
    'kernels=5, any_copies=0, sdpa="flash", gpu_time="< 200us". The whole test is profiled, unless it uses '
    f"the fixture 'hunch'. How to record: {', '.join(OPTIONS)}. See docs/pytest.md"
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for on the command line and in the ini file."""

    mode: Mode
    times: bool
    strict: bool
    baselines: Path
    traces: Path | None
    root: Path


def add_options(parser: pytest.Parser) -> None:
    """Register the options; nothing is loaded for them."""
    group = parser.getgroup("tracehunch", "guess what a profile shows (tracehunch)")
    group.addoption(
        "--tracehunch-save",
        action="store_true",
        help="write what each profiled test shows as its baseline",
    )
    group.addoption(
        "--tracehunch-compare",
        action="store_true",
        help="fail a profiled test that shows something else than its baseline",
    )
    group.addoption(
        "--tracehunch-update",
        action="store_true",
        help="rewrite the baselines that no longer hold, and write those that are missing",
    )
    group.addoption(
        "--tracehunch-times",
        action="store_true",
        help="put GPU times into the baselines that are written, as ranges",
    )
    group.addoption(
        "--tracehunch-strict",
        action="store_true",
        help="fail where a claim cannot be told (as one about a GPU without one) or a baseline is missing",
    )
    group.addoption(
        "--tracehunch-traces", metavar="DIR", help="keep the traces of profiled tests in this folder"
    )
    parser.addini(
        "tracehunch_baselines",
        "folder of the baselines, relative to the rootdir (default: .tracehunch)",
        default=".tracehunch",
    )


def configure(config: pytest.Config) -> None:
    """Register the marker, and refuse options that exclude each other."""
    config.addinivalue_line("markers", _MARKER_HELP)
    modes = _modes(config)
    if len(modes) > 1:
        given = " and ".join(f"--tracehunch-{mode}" for mode in modes)
        raise pytest.UsageError(f"{given}: choose one (update compares, and rewrites what differs)")
    if config.getoption("--tracehunch-times") and modes == ["compare"]:
        raise pytest.UsageError("--tracehunch-times: times are compared where a baseline has them")


def settings_of(config: pytest.Config) -> Settings:
    """Read the settings of a run; folders are absolute."""
    traces = config.getoption("--tracehunch-traces")
    modes = _modes(config)
    return Settings(
        mode=modes[0] if modes else "",
        times=bool(config.getoption("--tracehunch-times")),
        strict=bool(config.getoption("--tracehunch-strict")),
        baselines=config.rootpath / str(config.getini("tracehunch_baselines")),
        traces=None if traces is None else config.invocation_params.dir / str(traces),
        root=config.rootpath,
    )


def _modes(config: pytest.Config) -> list[Mode]:
    modes: tuple[Mode, ...] = ("save", "compare", "update")
    return [mode for mode in modes if config.getoption(f"--tracehunch-{mode}")]
