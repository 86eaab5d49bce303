"""Guess first, then look: what a PyTorch profile should show, what it shows, and where the two differ.

Names load when they are first used: importing the package loads neither torch nor numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Claim",
    "Diff",
    "Finding",
    "Guess",
    "Look",
    "Profile",
    "Ranks",
    "Trace",
    "TracehunchError",
    "Verdict",
    "__version__",
    "check",
    "diff",
    "guess_from",
    "link",
    "look",
    "measure",
    "profile",
    "profiled",
    "ranks",
    "read",
    "trace_ready",
]

if TYPE_CHECKING:
    from tracehunch.api import (
        Claim,
        Diff,
        Finding,
        Guess,
        Look,
        Profile,
        Ranks,
        Trace,
        Verdict,
        check,
        diff,
        guess_from,
        link,
        look,
        measure,
        profile,
        profiled,
        ranks,
        read,
        trace_ready,
    )
    from tracehunch.errors import TracehunchError


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # only the first use of a name pays for it

    home = "tracehunch.errors" if name == "TracehunchError" else "tracehunch.api"
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(ip: Any) -> None:
    """``%load_ext tracehunch``: registers ``%%hunch``."""
    from tracehunch.notebook import load_ipython_extension as load  # noqa: PLC0415  # numpy loads with it

    load(ip)
