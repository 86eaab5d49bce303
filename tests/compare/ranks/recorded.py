"""Recorded ranks as raw JSON, and what was examined of them."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehunch.compare.ranks.examine import examine

if TYPE_CHECKING:
    from tracehunch.compare.ranks.model import RankSummary

DATA = Path(__file__).parents[2] / "data"


def path_of(name: str) -> Path:
    return DATA / f"{name}.json.gz"


@cache
def summary(name: str) -> RankSummary:
    return examine(path_of(name))


def raw(name: str) -> dict[str, Any]:
    """Read the JSON without tracehunch."""
    return json.loads(gzip.decompress(path_of(name).read_bytes()))
