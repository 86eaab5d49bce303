"""Numbers and names of a comparison in words, whatever format it is written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.compare.recording import host_compares, is_real
from tracehunch.units import elide, percent, printable, ratio, time_column, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Diff, ScopeDiff, TimeChange

DETAILED: Final = ("annotation", "step", "whole")
TOP: Final = 8
"""Changes that a report lists unless told otherwise."""

SCOPE_NAME: Final = 60  # characters
ENGINE: Final = "autograd::engine::evaluate_function: "
_NAME: Final = 72  # characters of an op's name


def scope_name(scope: ScopeDiff) -> str:
    """Return what a pair of scopes is called, so that it fits into a sentence."""
    return elide(printable(scope.pair.name), SCOPE_NAME)


def wall_compares(diff: Diff, scope: ScopeDiff) -> bool:
    """Whether a scope's wall times may be held against each other: recorded alike, or against the odds."""
    fact = scope.fact("wall_time")
    if fact is None or fact.before is None or fact.after is None:
        return False
    first, second = fact.before.value, fact.after.value
    traces = diff.before.facts.tree.trace, diff.after.facts.tree.trace
    if fact.outcome in ("same", "noise") or not isinstance(first, int | float):
        return host_compares(*traces)
    return isinstance(second, int | float) and is_real(*traces, second - first)


def times_text(before: float, after: float) -> str:
    """``1,063.5 -> 938.1 us``: in one unit where it fits both."""
    first, second = time_column([before, after])
    number, _, unit = first.partition(" ")
    return f"{number} -> {second}" if second.endswith(f" {unit}") else f"{first} -> {second}"


def period_text(period: TimeChange) -> str:
    """``one call every 6,279.3 -> 5,061.4 us (-19%)``."""
    first, second = period.before.value, period.after.value
    return f"one call every {times_text(first, second)} ({relative(first, second)})"


def relative(before: float, after: float) -> str:
    """``-12%``, ``+30%``, ``3.20x``; ``new`` where there was nothing."""
    if before <= 0:
        return "new"
    change = 100 * (after / before - 1)
    if change >= 100:  # twice as much, and more
        return ratio(after / before)
    return f"{'+' if change >= 0 else '-'}{percent(abs(change))}"


def signed_time(us: float) -> str:
    """``-126.9 us``, ``+259.0 us``."""
    return f"{'+' if us >= 0 else '-'}{time_us(abs(us))}"


def path_text(path: Sequence[str]) -> str:
    """``aten::linear > aten::mm``: the op called, and the one that launched."""
    plain = [elide(printable(name.removeprefix(ENGINE)), _NAME) for name in path]
    plain = [name for at, name in enumerate(plain) if at == 0 or name != plain[at - 1]]
    return " > ".join(plain if len(plain) < 3 else (plain[0], plain[-1]))
