"""Run a whole program, unchanged, and record some of its steps."""

from tracehunch.capture.script.outcome import Outcome, as_typed
from tracehunch.capture.script.place import place, rank_here
from tracehunch.capture.script.program import Program, find_module, find_script
from tracehunch.capture.script.running import Ending, run, show
from tracehunch.capture.script.session import Session

__all__ = [
    "Ending",
    "Outcome",
    "Program",
    "Session",
    "as_typed",
    "find_module",
    "find_script",
    "place",
    "rank_here",
    "run",
    "show",
]
