"""Decisions by one random number: `torch.rand([]) < self.layerdrop`, as models leave out layers in training.

The number is not known, but lies between 0 and 1: it is never below a rate of 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.capture.program.known import Known
    from tracehunch.capture.program.tape import Tape

_KEY: Final = "_drawn_from_0_to_1"

_ABOVE: Final[dict[str, bool]] = {"lt": False, "le": False, "gt": True, "ge": True}
"""Comparisons, and whether they hold for a number that is above the other."""

_WHY: Final = "the program decides by a random number ({} {:g}): the likelier of both ways is recorded"


class Chance:
    """Tells how comparisons of a random number with a rate come out, or most often do."""

    def __init__(self, torch: Any, tape: Tape, known: Known) -> None:
        aten = torch.ops.aten
        self._torch, self._tape, self._known = torch, tape, known
        self._draws = (aten.rand.default, aten.rand.generator)
        self._comparisons: dict[Callable[..., Any], str] = {
            getattr(aten, name).Scalar: name for name in _ABOVE
        }

    def follow(self, func: Any, args: Any, made: Any) -> None:
        """Note that a call has drawn a number, or how its comparison comes out."""
        if self._known.everything:
            return
        if func in self._draws:
            if made.numel() == 1:
                made.__dict__[_KEY] = True
        elif func in self._comparisons and _KEY in args[0].__dict__:
            self._compared(self._comparisons[func], float(args[1]), made)

    def _compared(self, name: str, rate: float, made: Any) -> None:
        torch = self._torch
        if 0 < rate < 1:
            self._tape.obstacle(_WHY.format({"l": "below", "g": "above"}[name[0]], rate))
        above = rate < 0.5  # where the number most often is
        value = _ABOVE[name] is above
        self._known.keep(made, self._known.aside(lambda: torch.full(made.shape, value, device="cpu")))
