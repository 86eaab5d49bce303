"""What a Space measures, as ``settings.json`` beside its ``app.py`` says."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure, on what, and how often."""

    home: Path
    options: tuple[str, ...]
    """Of ``tracehunch attention``."""
    hardware: str
    gpu: bool
    """Whether that hardware has a GPU."""
    timeout_s: float = 1800
    pause_s: float = 60
    """Between the end of a run and the begin of the next."""

    @classmethod
    def read(cls, home: Path) -> Settings:
        """Read the file in ``home``."""
        said = json.loads((home / "settings.json").read_text(encoding="utf-8"))
        return cls(home, **{**said, "options": tuple(said["options"])})

    @property
    def command(self) -> list[str]:
        """What runs, in the folder of a run."""
        wanted = ["--save-traces", "traces", "-o", "report.html", "-o", "report.json"]
        return [sys.executable, "-m", "tracehunch", "attention", *self.options, *wanted]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a run: plain text, the Space's own tracehunch, and no more threads than cores.

        A container sees all cores of its host; CPU_CORES, which Spaces set, says how many of them it may use.
        """
        path = os.pathsep.join(filter(None, (str(self.home), os.environ.get("PYTHONPATH"))))
        more = {"NO_COLOR": "1", "COLUMNS": "100", "PYTHONUNBUFFERED": "1", "PYTHONPATH": path}
        cores = os.environ.get("CPU_CORES", "")
        if cores.isdecimal() and int(cores) and "OMP_NUM_THREADS" not in os.environ:
            more["OMP_NUM_THREADS"] = cores
        return {**os.environ, **more}
