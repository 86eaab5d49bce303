"""How many processors this process may use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


def processors() -> int:
    """Return how many processors this process may use, whole ones of a container's share; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text("ascii").split()
        return max(min(allowed, int(quota) // int(period)), 1)
    except (OSError, ValueError):  # no cgroup, or no limit ("max")
        return allowed
