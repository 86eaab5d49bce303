"""``%load_ext tracehunch``: the cell magic that asks for a guess before it runs the cell."""

from __future__ import annotations

from typing import Any

__all__ = ["load_ipython_extension"]


def load_ipython_extension(ip: Any) -> None:
    """Register ``%%hunch`` with an IPython shell."""
    from tracehunch.notebook.magic import magic_for  # noqa: PLC0415  # numpy loads with it

    ip.register_magic_function(magic_for(ip), "cell", "hunch")
