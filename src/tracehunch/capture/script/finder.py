"""What the steps of a program are: rounds of its optimizers, else of its models, else there are none.

Not known beforehand: a training script calls its model before its optimizer, an evaluation may come first,
and a benchmark of plain functions has neither. So the whole is recorded from the start, and whenever
something better has come often enough, the recording begins again with that.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal

from tracehunch.capture.script.rounds import Rounds

Kind = Literal["optimizer", "forward", "whole"]

KINDS: Final[tuple[Kind, ...]] = ("whole", "forward", "optimizer")
"""From the least to the most telling."""

_BETWEEN_STEPS: Final = 100
"""Forwards in a row that are no longer taken for gradient accumulation or an evaluation between two steps."""

_RESTARTS: Final = 2
"""How often a newcomer among the optimizers or models may end a recording that had begun too early."""


class Move(Enum):
    """What is to be done after something has happened in the program."""

    NOTHING = "nothing"
    START = "start recording steps of this kind now"
    STEP = "a step of the kind that is being recorded has ended"
    AGAIN = "drop the recording, its steps were not whole ones"


class Finder:
    """Told of each outermost forward and optimizer step that ended, says what that means.

    ``kind`` is what is being recorded at the moment. ``skip``: rounds that pass before recording them starts.
    ``only``: the kind that is wanted, whatever else comes.
    """

    def __init__(self, skip: int, only: Kind | None = None) -> None:
        self.kind: Kind = "whole"
        self.optimizers = Rounds()
        self.models = Rounds()
        self._skip = max(skip, 1)  # what a step is shows when the first has ended
        self.only = only
        self._trains = False
        self._since_optimizer = 0
        self._restarts = _RESTARTS

    def optimizer(self, who: int) -> Move:
        """Take note that an optimizer's step has ended."""
        self._trains = True
        self._since_optimizer = 0
        return self._turn("optimizer", self.optimizers, who, ready=True)

    def forward(self, who: int) -> Move:
        """Take note that an outermost forward has ended."""
        self._since_optimizer += 1
        between = self._trains and self.only is None and self._since_optimizer < _BETWEEN_STEPS
        return self._turn("forward", self.models, who, ready=not between)

    def waits_for(self, kind: Kind) -> bool:
        """Whether steps of a kind can still change what is recorded."""
        if self.only is not None:
            return kind == self.only
        return KINDS.index(kind) >= KINDS.index(self.kind)

    def _turn(self, kind: Kind, rounds: Rounds, who: int, *, ready: bool) -> Move:
        new = rounds.is_new(who)
        ended = rounds.turn(who)
        if not self.waits_for(kind):
            return Move.NOTHING
        if kind == self.kind:
            return self._again(rounds) if new and self._restarts else Move.STEP if ended else Move.NOTHING
        if ready and ended and rounds.ended >= self._skip:
            self.kind = kind
            return Move.START
        return Move.NOTHING

    def _again(self, rounds: Rounds) -> Move:
        self._restarts -= 1
        self.kind = "whole"
        rounds.ended = 0
        return Move.AGAIN
