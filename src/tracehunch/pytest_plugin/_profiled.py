"""What a test profiled: facts, ops, the look; and claims about it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

import pytest

from tracehunch.errors import GuessError, TracehunchError

if TYPE_CHECKING:
    from pathlib import Path

    from tracehunch.facts.model import ScopeFacts
    from tracehunch.guess import Guess
    from tracehunch.pytest_plugin._facts import FactsView, OpsView
    from tracehunch.verdict import Look, Verdict


class Profiled:
    """One profile of a test: of ``hunch(function, ...)``, of ``with hunch("label")``, or of a whole test.

    ``label`` is the scope that the facts are of, ``result`` what the function returned (of the last call),
    ``trace_path`` the trace. All else is worked out when it is first asked for.
    """

    def __init__(self, label: str, trace_path: Path, *, strict: bool) -> None:
        self.label = label
        self.trace_path = trace_path
        self.result: object = None
        self._strict = strict
        self._recorded = False
        self._look: Look | None = None

    def __repr__(self) -> str:
        return f"<profile of {self.label}>"

    @property
    def look(self) -> Look:
        """Everything that the trace shows, with the verdict on what was claimed so far."""
        if self._look is None:
            from tracehunch.judge import examine  # noqa: PLC0415  # numpy and msgspec load with the first look
            from tracehunch.trace import read  # noqa: PLC0415  # as above

            self._look = examine(read(self._there()))
        return self._look

    @property
    def facts(self) -> FactsView:
        """Facts by key, per call of the scope: ``p.facts["kernels"]``; see ``tracehunch explain KEY``."""
        from tracehunch.pytest_plugin._facts import FactsView  # noqa: PLC0415  # as above

        return FactsView(self.scope, self.look, self.trace_path, strict=self._strict)

    @property
    def ops(self) -> OpsView:
        """How often a call runs an op, by its name: ``p.ops["copy_"]``."""
        from tracehunch.pytest_plugin._facts import OpsView  # noqa: PLC0415  # as above

        return OpsView(self.scope, self.look, self.trace_path)

    @property
    def scope(self) -> ScopeFacts:
        """The facts of the scope that was profiled."""
        found = self.look.facts.scope(self.label)
        if found is None:
            raise TracehunchError(
                f"{self.trace_path} has no scope {self.label!r}", "", "this is a defect of tracehunch"
            )
        return found

    @property
    def verdict(self) -> Verdict:
        """What became of the claims: held, surprises, cannot tell."""
        return self.look.verdict

    def check(self, scope: str | None = None, /, **claims: object) -> Self:
        """Hold claims in the words of the marker: ``p.check(kernels=5, any_copies=0, gpu_time="< 200us")``.

        A claim that broke fails the test. One that cannot be told skips it where nothing else could be told
        (with ``--tracehunch-strict`` it fails it).

        Raises:
            GuessError: an unknown key, or a value that cannot be understood.

        """
        from tracehunch.guess.model import Guess  # noqa: PLC0415  # as above
        from tracehunch.pytest_plugin._claims import claims_of  # noqa: PLC0415  # as above
        from tracehunch.pytest_plugin._judge import outcome_of  # noqa: PLC0415  # as above

        __tracebackhide__ = True
        try:
            made = claims_of(claims, scope or self.label)
        except GuessError as error:
            raise GuessError(
                error.what, error.why, error.todo
            ) from None  # from here: its traceback says nothing
        verdict = self.judge(Guess(made))
        outcome = outcome_of(verdict, self.look)
        if outcome.broken or (self._strict and outcome.untold):
            pytest.fail("\n".join((*outcome.broken, *map(str, outcome.untold))))
        if outcome.untold and not outcome.told:
            pytest.skip("; ".join(map(str, outcome.untold)))
        return self

    def judge(self, guess: Guess) -> Verdict:
        """Hold a guess against the profile, and return the verdict on it; ``look`` keeps all of them."""
        from tracehunch.judge import judge  # noqa: PLC0415  # as above

        verdict = judge([guess], self.look.facts, self.look.checked)
        self._look = replace(self.look, verdict=self.look.verdict.and_then(verdict))
        return verdict

    def finished(self, result: object = None) -> None:
        """Tell that the trace is there."""
        self.result, self._recorded = result, True

    @property
    def recorded(self) -> bool:
        """Whether the trace is there."""
        return self._recorded

    @property
    def readable(self) -> bool:
        """Whether the trace is there and can be read: a test may have moved or broken it."""
        try:
            return self.look is not None
        except TracehunchError:
            return False

    def _there(self) -> Path:
        if not self._recorded:
            raise TracehunchError(
                f"{self.label} is not profiled yet",
                "its block has not ended",
                "look at it after the with block",
            )
        return self.trace_path
