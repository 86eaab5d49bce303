"""Loading a framework where it is needed, and what is said where it is not there."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tracehunch.errors import CaptureError


def is_there(module: str) -> bool:
    """Whether the package of a module is installed; nothing is loaded."""
    return find_spec(module.partition(".")[0]) is not None


def load(module: str, extra: str) -> Any:
    """Load a module of a framework that one of the package's extras installs.

    Raises:
        CaptureError: it is not installed, with the command that installs it, or cannot be loaded.

    """
    name = module.partition(".")[0]
    if not is_there(name):
        raise CaptureError(f"{name} is not installed", "", f"pip install 'tracehunch[{extra}]'")
    try:
        return import_module(module)
    except ImportError as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CaptureError(
            f"{name} cannot be loaded", why, f"pip install -U 'tracehunch[{extra}]'"
        ) from error
