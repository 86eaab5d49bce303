"""The kinds of hardware a Docker Space can have."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from importlib.resources import files
from typing import Final

from tracehunch.errors import TracehunchError

_TABLES: Final = tomllib.loads((files(__package__) / "hardware.toml").read_text(encoding="utf-8"))
HARDWARE: Final[dict[str, str]] = _TABLES["hardware"]
"""Name as ``suggested_hardware`` has it -> GPU, or CPU."""


def known(name: str) -> str:
    """Give back the name of hardware that a Docker Space can have.

    Raises:
        TracehunchError: there is none of this name.

    """
    if name in HARDWARE:
        return name
    meant = get_close_matches(name.lower(), HARDWARE, n=1)
    todo = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(HARDWARE)}"
    raise TracehunchError(f"a Docker Space cannot have {name!r}", _TABLES["refused"].get(name, ""), todo)


def has_gpu(name: str) -> bool:
    """Whether the hardware of this name has a GPU."""
    return HARDWARE[name] != "CPU"
