"""The errors tracehunch raises on purpose.

TracehunchError            anything that is told to the user in one line; exit code 2
├── ReadError              a file that cannot be read as a trace
├── GuessError             a hunch.toml or claim that cannot be understood
└── CaptureError           a run that could not be profiled
"""

from __future__ import annotations


class TracehunchError(Exception):
    """What went wrong, why, and what to do about it; printed as one line.

    ``what`` names the thing and the failure, ``why`` the reason as far as it is known, ``todo`` the next
    step.
    """

    exit_code = 2

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        self.what, self.why, self.todo = what, why, todo
        said = ": ".join(part for part in (what, why) if part)
        super().__init__(f"{_open(said)}; {todo}" if todo else said)


def _open(said: str) -> str:
    """Return text without the full stop of another's sentence, since more follows."""
    return said[:-1] if said.endswith(".") and not said.endswith("..") else said


class ReadError(TracehunchError):
    """A file that cannot be read as a trace; the text holds the byte offset where there is one."""


class GuessError(TracehunchError):
    """A guess that cannot be understood: unknown key, malformed relation, wrong type."""


class CaptureError(TracehunchError):
    """A run that could not be profiled: the device, the shapes, or the code under test."""
