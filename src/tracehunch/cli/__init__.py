"""The command line: one file a verb."""

from tracehunch.cli.main import main

__all__ = ["main"]
