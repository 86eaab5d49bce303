"""Which process of a distributed job this is, and what its trace is called."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def rank_of_job(torch: Any) -> int | None:
    """Return this process' rank; None where the job has one process.

    As the initialised process group says, else as launchers (torchrun, accelerate) do in ``RANK``.
    """
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()) if distributed.get_world_size() > 1 else None
    rank, world_size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(rank) if rank.isdigit() and world_size.isdigit() and int(world_size) > 1 else None


def ranked(path: Path, rank: int | None) -> Path:
    """``train.json.gz`` of rank 3 is ``train_rank3.json.gz``."""
    if rank is None:
        return path
    stem, dot, suffix = path.name.partition(".json")
    return path.with_name(f"{stem}_rank{rank}{dot}{suffix}")
