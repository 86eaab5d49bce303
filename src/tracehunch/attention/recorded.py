"""The recorded H200 traces that ship with the package, so that everything can be seen without a GPU."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tracehunch.attention.expert import cudnn_number
from tracehunch.attention.outcome import Device
from tracehunch.attention.workload import Workload


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded on what, and the trace of each variant."""

    device: Device
    workload: Workload
    steps: int
    traces: dict[str, Path]


@cache
def recording() -> Recording:
    """Describe the recording as its index (``recorded/index.toml``) does."""
    folder = Path(__file__).parents[1] / "recorded"
    index = tomllib.loads((folder / "index.toml").read_text(encoding="utf-8"))
    device = index["device"]
    return Recording(
        Device(
            device["kind"],
            device["name"],
            device["torch"],
            recorded=True,
            cudnn=cudnn_number(device["cudnn"]),
        ),
        Workload(**index["workload"]),
        index["steps"],
        {name: folder / f"{name}.json.gz" for name in index["traces"]},
    )
