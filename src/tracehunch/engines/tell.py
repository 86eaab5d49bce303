"""Remarks on a run for who watches it; they are no part of its results."""

from __future__ import annotations


def untold(_line: str) -> None:
    """Tell nobody."""
