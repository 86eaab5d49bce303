"""Where a script's trace goes: named after the script and, in a job of several processes, the rank."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracehunch.capture.export import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping

_SUFFIX: Final = ".json.gz"

_LAUNCHERS: Final = (
    ("RANK", "WORLD_SIZE"),  # torchrun, accelerate launch, deepspeed
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # mpirun
    ("SLURM_PROCID", "SLURM_NTASKS"),  # srun
)


@dataclass(frozen=True, slots=True)
class Rank:
    """Which process of how many this is."""

    number: int
    of: int


def rank_here(environ: Mapping[str, str] | None = None) -> Rank | None:
    """Return what the launcher says of this process; None for a job of one."""
    there = os.environ if environ is None else environ
    for rank, size in _LAUNCHERS:
        if there.get(rank, "").isdigit() and there.get(size, "").isdigit():
            return Rank(int(there[rank]), int(there[size])) if int(there[size]) > 1 else None
    return None


def place(given: str | Path | None, script: str, rank: Rank | None) -> Path:
    """Return the absolute path of the trace to write: the current folder may change while the script runs.

    ``given`` may be a file, which is replaced, or a folder: one that is there, or that ends in a slash. A
    name of our own, ``tracehunch-SCRIPT.json.gz``, gets a number where there is such a file already. Ranks
    get ``-rank0`` and so on before the extension.
    """
    mark = "" if rank is None else f"-rank{rank.number}"
    is_folder = str(given or "").endswith(os.sep)
    given = None if given is None else Path(given)
    if given is not None and not given.is_dir() and not is_folder:
        suffix = next(
            (one for one in sorted(SUFFIXES, key=len, reverse=True) if given.name.endswith(one)), ""
        )
        stem = given.name.removesuffix(suffix) if suffix else given.name
        return given.absolute().with_name(f"{stem}{mark}{suffix}")
    folder = (given or Path()).absolute()
    stem = f"tracehunch-{script}"
    numbered = (f"{stem}{number}{mark}{_SUFFIX}" for number in _numbers())
    return next(path for name in numbered if not (path := folder / name).exists())


def _numbers() -> list[str]:
    return ["", *(f"-{number}" for number in range(2, 100_000))]
