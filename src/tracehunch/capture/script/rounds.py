"""Where one round ends and the next begins, seen from what takes its turn in it.

Optimizers (or models) take turns: one alone, A B A B as in a GAN, A A A B with several steps of a critic, or
hundreds in a row where each parameter has its own. A round is over after the one that closes it.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

_ALONE: Final = 4
"""Turns in a row, from which on the others may be gone."""


class Rounds:
    """Counts the rounds that have ended.

    The first to take a turn opens the first round. When it returns after another one, the round before was
    the pattern: its last turn closes a round from then on. Alone, each turn is a round. A newcomer changes
    the pattern, which is then learned anew. Who takes far more turns in a row than ever before is alone: the
    others belonged to a phase that is over.
    """

    def __init__(self) -> None:
        self.ended = 0
        self._known: set[int] = set()
        self._first = self._last = 0
        self._row = 0  # turns that the last one has taken in a row
        self._longest: Counter[int] = Counter()  # the same, the most that each has taken
        self._turns: Counter[int] = Counter()
        self._closer: tuple[int, int] | None = None  # who, and how many turns it has in a round

    def is_new(self, who: int) -> bool:
        """Whether this one has not taken a turn yet."""
        return who not in self._known

    def turn(self, who: int) -> bool:
        """Somebody took a turn; return whether that ended a round."""
        self._note_row(who)
        if self.is_new(who):
            self._first = self._first if self._known else who
            self._known.add(who)
            self._closer = None
        elif self._closer is None and len(self._known) > 1 and who == self._first != self._last:
            self._closer = (self._last, self._turns[self._last])
            self._turns.clear()
            self.ended += 1  # before this turn
        self._last = who
        self._turns[who] += 1
        return self._ends(who)

    def _note_row(self, who: int) -> None:
        if who != self._last:
            self._longest[self._last] = max(self._longest[self._last], self._row)
            self._row = 0
        self._row += 1
        if len(self._known) > 1 and self._row >= max(_ALONE, 2 * self._longest[who] + 1):
            self._known = {who}
            self._first, self._closer = who, None

    def _ends(self, who: int) -> bool:
        alone = len(self._known) == 1
        closes = self._closer is not None and who == self._closer[0] and self._turns[who] >= self._closer[1]
        if alone or closes:
            self._turns.clear()
            self.ended += 1
        return alone or closes
