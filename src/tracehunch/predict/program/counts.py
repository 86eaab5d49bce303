"""How many kernels, copies and memsets some calls make, and how far that may be off."""

from collections.abc import Sequence
from typing import Final

from tracehunch.predict.activities import Activities
from tracehunch.predict.program.model import Amounts, CallGuess, CountRange

_LESS: Final = {"high": 0.0, "medium": 0.1, "low": 0.5}
"""How far a count may be off, by the confidence in it."""


def count_ranges(calls: Sequence[CallGuess], found: Amounts) -> dict[str, CountRange]:
    """Return the least and the most to expect of each count, by its key; equal where it is sure."""
    numbers = {"kernels": found.kernels, "copies": found.copies, "memsets": found.memsets}
    return {key: _range(calls, key, number) for key, number in numbers.items()}


def _range(calls: Sequence[CallGuess], key: str, number: int) -> CountRange:
    off = sum(_LESS[one.activities.confidence] * _count(one.activities, key) for one in calls)
    doubtful = any(one.activities.confidence == "low" and not one.activities.empty for one in calls)
    unsure = doubtful and key != "copies"  # what is less certain are kernels that libraries choose
    if off == 0 and not unsure:
        return CountRange(number, number)
    width = max(round(off), 1)
    return CountRange(max(number - width, 0), number + width)


def _count(found: Activities, key: str) -> int:
    if key == "memsets":
        return found.memsets or 0
    return len((found.kernels if key == "kernels" else found.copies) or ())
