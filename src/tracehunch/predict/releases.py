"""PyTorch releases that predictions know: what their wheels ship, and when they try cuDNN first."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

Version = tuple[int, int]
"""Major and minor, as (2, 11)."""


@dataclass(frozen=True, slots=True)
class CudnnFirst:
    """When the first CUDA SDPA call of a process puts cuDNN before flash.

    `majors` and `minors` (None: any) are of the GPU's compute capability; `minors_before_cuda13` holds in
    builds for CUDA 12. The runtime cuDNN must be newer than `above_cudnn` (None: any will do), and the
    environment variable `variable` must not have the value `off_value`. `only_micro`: only in that patch
    release. `replaces_order`: it does so over an order that was set by hand before (None: not known).
    """

    majors: tuple[int, ...]
    minors: tuple[int, ...] | None
    minors_before_cuda13: tuple[int, ...] | None
    above_cudnn: int | None
    variable: str
    off_value: str
    only_micro: int | None
    replaces_order: bool | None
    source: str


@dataclass(frozen=True, slots=True)
class Release:
    """One PyTorch release: `cuda` and `cudnn` are what its PyPI wheel for Linux pins.

    `builds` has the cuDNN of the wheel for each CUDA version, as far as PyTorch's own index has one.
    """

    torch: Version
    exact: bool
    cuda: Version | None
    cudnn: int | None
    cudnn_first: CudnnFirst | None
    source: str
    builds: Mapping[Version, int]

    def cudnn_of(self, cuda: Version | None) -> int | None:
        """Return the cuDNN of the wheel for a CUDA version, that of the PyPI wheel where there is none."""
        return self.cudnn if cuda is None else self.builds.get(cuda, self.cudnn)


def parse_version(text: str) -> Version:
    """Return (2, 11) for "2.11"."""
    major, minor = text.split(".")
    return int(major), int(minor)


def _minors(value: list[int] | Literal["any"] | None) -> tuple[int, ...] | None:
    return None if value is None or value == "any" else tuple(value)


def _cudnn_first(table: Mapping[str, Any] | None) -> CudnnFirst | None:
    if table is None:
        return None
    off = table.get("off_by", {})
    return CudnnFirst(
        majors=tuple(table["majors"]),
        minors=_minors(table["minors"]),
        minors_before_cuda13=_minors(table.get("minors_before_cuda13", table["minors"])),
        above_cudnn=table.get("above_cudnn"),
        variable=off.get("variable", ""),
        off_value=off.get("value", ""),
        only_micro=table.get("only_micro"),
        replaces_order=table.get("replaces_order"),
        source=table["source"],
    )


@lru_cache(maxsize=1)
def releases() -> Mapping[Version, Release]:
    """Return every known release, oldest first."""
    text = (files(__package__) / "releases.toml").read_text(encoding="utf-8")
    known: dict[Version, Release] = {}
    for table in tomllib.loads(text)["release"]:
        version = parse_version(table["torch"])
        known[version] = Release(
            torch=version,
            exact=table["knowledge"] == "exact",
            cuda=parse_version(table["cuda"]) if "cuda" in table else None,
            cudnn=table.get("cudnn"),
            cudnn_first=_cudnn_first(table.get("cudnn_first")),
            source=table["source"],
            builds={parse_version(cuda): cudnn for cuda, cudnn in table["builds"].items()},
        )
    return known
