"""What several ranks show of one change: once where they agree, each by itself where they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.units import join

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracehunch.compare.over_time.model import Run, Shift

_EACH: Final = 4
"""Ranks that are told one by one; of more the range is told."""


def by_rank(told: Mapping[str, str], ranks: int) -> list[tuple[str, str]]:
    """Return (ranks, text) for each different text; no ranks where all ``ranks`` say the same."""
    of_text: dict[str, list[str]] = {}
    for label, text in told.items():
        of_text.setdefault(text, []).append(label)
    if len(of_text) == 1 and len(told) == ranks:
        return [("", next(iter(of_text)))]
    return [(_named(labels), text) for text, labels in of_text.items()]


def are_many(lines: Sequence[object]) -> bool:
    """Tell whether there are too many to tell each."""
    return len(lines) > _EACH


def joined(told: Mapping[str, str], ranks: int) -> str:
    """Return the texts in one line, each with its ranks where they differ."""
    lines = by_rank(told, ranks)
    return ", ".join(f"{text} ({labels})" if labels else text for labels, text in lines)


def numbers_told(values: Mapping[str, float], say: Callable[[float], str], ranks: int) -> str:
    """Return what a number is: of all ranks, of each, or from which to which where these are many."""
    told = {label: say(value) for label, value in values.items()}
    if are_many(by_rank(told, ranks)):
        low, high = min(values.values()), max(values.values())
        return f"{say(low)} to {say(high)} over {len(values)} ranks"
    return joined(told, ranks)


def texts_told(
    some: Sequence[tuple[Run, Shift]], say: Callable[[Shift], Sequence[str]], *, after: bool = False
) -> tuple[str, ...]:
    """Return the sentences of all ranks in order; its ranks before (or ``after``) one that not all say."""
    labels: dict[str, list[str]] = {}
    for run, shift in some:
        for text in say(shift):
            labels.setdefault(text, []).append(run.label)
    return tuple(
        text if len(of) == len(some) else f"{text} ({_named(of)})" if after else f"{_named(of)}: {text}"
        for text, of in labels.items()
    )


def _named(labels: Sequence[str]) -> str:
    return f"{len(labels)} ranks" if are_many(labels) else join(labels)
