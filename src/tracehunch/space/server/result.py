"""What a good run left: report, traces, and what these say of the machine."""

from __future__ import annotations

import json
import re
import time
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_VERSIONS: Final = (("torch", "torch"), ("cuda", "CUDA"), ("cudnn", "cuDNN"), ("driver", "driver"))
"""As the fingerprint calls them -> as people do."""


@dataclass(frozen=True, slots=True)
class Result:
    """A good run: its folder, when it ended, and the environment fingerprint of its traces."""

    folder: Path
    when: str
    environment: Mapping[str, Mapping[str, Any]]

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU was measured."""
        return "gpu" in self._machine

    @property
    def machine(self) -> str:
        """The GPU, else the CPU."""
        return str(self._machine.get("gpu") or self._machine.get("cpu") or "unknown hardware")

    @property
    def fingerprint(self) -> str:
        """The machine and its versions in one line."""
        versions = self.environment.get("versions", {})
        number = self._machine.get("threads")
        threads = [f"{number} thread{'' if number == 1 else 's'}"] if number else []
        known = [f"{word} {versions[key]}" for key, word in _VERSIONS if key in versions]
        return " · ".join([self.machine, *threads, *known])

    @property
    def slug(self) -> str:
        """The machine, as a part of a file's name."""
        return re.sub(r"[^a-z0-9]+", "-", self.machine.lower()).strip("-") or "unknown"

    @property
    def _machine(self) -> Mapping[str, Any]:
        return self.environment.get("machine", {})


def finished(folder: Path) -> Result:
    """Read what a run wrote, and pack its traces.

    Raises:
        OSError: a file is missing.
        ValueError, KeyError, TypeError: the report is not what it should be.

    """
    (folder / "report.html").stat()
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    with zipfile.ZipFile(folder / "traces.zip", "w", zipfile.ZIP_STORED) as archive:
        for trace in sorted((folder / "traces").glob("*.json.gz")):
            archive.write(trace, trace.name)
    ran = [one["look"] for one in report["attention"]["variants"] if one["status"] == "ran"]
    environments = [look["trace"].get("environment") for look in ran]
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return Result(folder, when, next(filter(None, environments), {}))
