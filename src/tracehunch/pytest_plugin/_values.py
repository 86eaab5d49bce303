"""Values of facts that remember what they are, so that a broken assertion can say why.

They are ints, floats, texts and tuples in every respect; what is computed from them is plain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from tracehunch.facts.model import ScopeFacts, Value
    from tracehunch.verdict import Look


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from: its key (or op) in a scope of a look; ``unit`` as in the vocabulary."""

    key: str
    unit: str
    scope: ScopeFacts
    look: Look
    trace_path: Path
    is_op: bool = False
    """Whether ``key`` is an op, and the value how often it is called."""


class FactInt(int):
    """A count."""

    origin: Origin

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


class FactFloat(float):
    """A time in microseconds, a ratio or a rate."""

    origin: Origin

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


class FactText(str):
    """A word, as an SDPA backend."""

    __slots__ = ("origin",)

    origin: Origin

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


class FactTexts(tuple[str, ...]):  # noqa: SLOT001  # a tuple has no room for slots with content
    """Several words, as the ops that lead."""

    origin: Origin

    def __reduce__(self) -> tuple[type[tuple[str, ...]], tuple[list[str]]]:
        return tuple, (list(self),)


FactValue = FactInt | FactFloat | FactText | FactTexts
TYPES: Final = (FactInt, FactFloat, FactText, FactTexts)


def remembering(value: Value, origin: Origin) -> FactValue:
    """Return the value with its origin."""
    made: FactValue
    match value:
        case str():
            made = FactText(value)
        case tuple():
            made = FactTexts(value)
        case float():
            made = FactFloat(value)
        case _:
            made = FactInt(value)
    made.origin = origin
    return made


def plain(value: object) -> object:
    """Return the plain value of a fact, which any serialiser takes; anything else as it is."""
    match value:
        case FactText():
            return str(value)
        case FactTexts():
            return tuple(value)
        case FactFloat():
            return float(value)
        case FactInt():
            return int(value)
    return value
