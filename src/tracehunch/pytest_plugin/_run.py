"""One test from its profile to its outcome: claims of the marker, the baseline, and what is told of both."""

from __future__ import annotations

import contextlib
import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

from tracehunch.errors import CaptureError, TracehunchError
from tracehunch.pytest_plugin._baselines import baseline_paths, settle
from tracehunch.pytest_plugin._claims import MarkerClaims, guess_of, marker_claims, marker_options
from tracehunch.pytest_plugin._figures import figures_of, properties
from tracehunch.pytest_plugin._hunch import Hunch
from tracehunch.pytest_plugin._judge import Outcome, about, outcome_of
from tracehunch.pytest_plugin._settings import Settings, settings_of
from tracehunch.pytest_plugin._told import Told

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tracehunch.pytest_plugin._baselines import Compared
    from tracehunch.pytest_plugin._profiled import Profiled

_FIXTURE: Final = "hunch"
_BELOW: Final = (f"{Path(__file__).parents[1]}{os.sep}", contextlib.__file__)
"""Files that a traceback goes through between a test's call of the fixture and an error in it."""


@dataclass(slots=True)
class TestRun:
    """What a test is held to, its fixture, and what came of it; ``whole`` if all of its body is profiled."""

    __test__ = False

    hunch: Hunch
    claims: tuple[MarkerClaims, ...]
    settings: Settings
    whole: bool
    told: Told = field(default_factory=Told)

    @property
    def profiles(self) -> list[Profiled]:
        """Profiles whose traces are there."""
        return [one for one in self.hunch.profiles if one.recorded]


def prepare(item: pytest.Item, temporary: Path, *, whole: bool) -> TestRun:
    """Read what the markers ask for, before the test runs; one that cannot be understood fails the set-up."""
    settings = settings_of(item.config)
    try:
        claims, options = marker_claims(item), marker_options(item)
    except TracehunchError as error:
        fail(f"@pytest.mark.tracehunch: {error}")
    hunch = Hunch(item.nodeid, settings.traces or temporary, options, strict=settings.strict)
    return TestRun(hunch, claims, settings, whole)


def profiled_call(item: pytest.Item, run: TestRun) -> Generator[None, object, object]:
    """Run the test, profiled as a whole if it must be, and hold what was profiled to claims and baseline."""
    ended = False
    try:
        with ExitStack() as stack:
            if run.whole:
                try:
                    stack.enter_context(run.hunch.block(getattr(item, "originalname", None) or item.name))
                except TracehunchError as error:
                    fail(str(error))
            result = yield
            ended = True
        _hold(item, run)
    except CaptureError as error:
        if not ended:  # then it is the test's own
            raise
        fail(str(error))
    finally:
        run.told.figures = [figures_of(one) for one in run.profiles if one.readable]
        item.user_properties += properties(run.told.figures)
    return result


def fail(message: str) -> NoReturn:
    """Fail without a traceback: where the plugin stands in its own code says nothing."""
    raise pytest.fail.Exception(message, pytrace=False) from None


def end_in_test(failure: BaseException) -> None:
    """Let the traceback of an error of ours end where the test called us: what lies below says nothing."""
    last, frame = None, failure.__traceback__ if isinstance(failure, TracehunchError) else None
    while frame is not None:
        if not frame.tb_frame.f_code.co_filename.startswith(_BELOW):
            last = frame
        frame = frame.tb_next
    if last is not None:
        last.tb_next = None


def _hold(item: pytest.Item, run: TestRun) -> None:
    """Fail or skip by what claims and baselines came to."""
    try:
        claimed = _claimed(run)
        compared = _compared(item, run)
    except TracehunchError as error:
        fail(str(error))
    untold = [*claimed.untold, *(unknown for one in compared for unknown in one.outcome.untold)]
    run.told.untold = [(one.key, one.scope, one.reason) for one in untold]
    run.told.baselines = [(one.status, _shown(one.path, run)) for one in compared]
    lines = [*claimed.broken, *_baseline_lines(compared, run)]
    if run.settings.strict:
        missing = [_shown(one.path, run) for one in compared if one.status == "missing"]
        lines += [f"{one} (--tracehunch-strict)" for one in untold]
        lines += [f"no baseline {path} (--tracehunch-strict)" for path in missing]
    if lines:
        run.told.broken = True
        fail("\n".join(lines))
    if claimed.untold and not claimed.told:
        raise pytest.skip.Exception("; ".join(map(str, claimed.untold)), _use_item_location=True)


def _claimed(run: TestRun) -> Outcome:
    """Hold each profile to the claims of the markers that are about it."""
    if not any(one.claims for one in run.claims):
        return Outcome()
    profiles = run.profiles
    if not profiles:
        todo = f'call {_FIXTURE}(function, ...) or write with {_FIXTURE}("label"):'
        return Outcome(broken=(f"the marker claims something, and the test profiled nothing; {todo}",))
    looks = [one.look for one in profiles]
    wanted = [about(marker, looks) for marker in run.claims]
    outcome = Outcome()
    for at, profile in enumerate(profiles):
        markers = [marker for marker, of in zip(run.claims, wanted, strict=True) if of[at]]
        guess = guess_of(markers, profile.label)
        if guess.claims:
            outcome = outcome.and_then(outcome_of(profile.judge(guess), profile.look))
    return outcome


def _compared(item: pytest.Item, run: TestRun) -> list[Compared]:
    settings = run.settings
    if not settings.mode:
        return []
    paths = baseline_paths(run.profiles, item.nodeid, settings.baselines)
    return [settle(one, path, item.nodeid, settings) for one, path in zip(run.profiles, paths, strict=True)]


def _baseline_lines(compared: Sequence[Compared], run: TestRun) -> list[str]:
    lines = []
    for one in compared:
        if one.status == "broken":
            lines += [*one.outcome.broken, *one.notes]
            lines.append(f"baseline: {_shown(one.path, run)}; --tracehunch-update accepts what it shows now")
    return lines


def _shown(path: Path, run: TestRun) -> str:
    root: Any = run.settings.root
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
