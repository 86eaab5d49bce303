"""Saved baselines: one hunch.toml per test and device, written whole, and compared."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from tracehunch.errors import GuessError, TracehunchError
from tracehunch.guess.baseline import baseline
from tracehunch.guess.context import context_of, differences
from tracehunch.guess.hunch import read_hunch
from tracehunch.guess.write import writable, write_hunch
from tracehunch.judge.foreign import settle_times
from tracehunch.judge.known import known_of, new_findings
from tracehunch.pytest_plugin._judge import Outcome, outcome_of, untold_of
from tracehunch.pytest_plugin._names import path_of, slug
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.guess import Guess
    from tracehunch.pytest_plugin._profiled import Profiled
    from tracehunch.pytest_plugin._settings import Settings
    from tracehunch.trace import Trace
    from tracehunch.verdict import Look

TEST: Final = "test"
"""Entry of a baseline's context that names its test."""

_FAILING_FINDINGS: Final = frozenset({"sdpa-known-hazard"})
"""New findings that fail a comparison.

The rest come and go with the time that things take, which differs on a busy machine; what the program does
differently shows in counts, backend and dtype.
"""

Status = Literal["saved", "updated", "unchanged", "held", "broken", "missing", "empty"]


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one profile's baseline; ``notes`` say in what else the two recordings differ."""

    path: Path
    status: Status
    outcome: Outcome = field(default_factory=Outcome)
    notes: tuple[str, ...] = ()


def baseline_paths(profiles: Sequence[Profiled], nodeid: str, folder: Path) -> list[Path]:
    """Return where the baselines of a test's profiles are: by device, the first by the test's name alone."""
    return [
        folder / _device(one.look.facts.tree.trace) / f"{path_of(nodeid, one.label if at else '')}.toml"
        for at, one in enumerate(profiles)
    ]


def settle(profile: Profiled, path: Path, nodeid: str, settings: Settings) -> Compared:
    """Save, compare or update one baseline, as the settings say.

    Raises:
        TracehunchError: the baseline cannot be read or written, or claims times of other hardware.

    """
    if settings.mode == "save":
        return _write(profile, path, nodeid, "saved", times=settings.times)
    if not path.exists():
        if settings.mode == "compare":
            return Compared(path, "missing" if profile.scope.value("leaf_ops") else "empty")
        return _write(profile, path, nodeid, "saved", times=settings.times)
    if settings.mode == "compare":
        return _compared(profile, path)
    return _update(profile, path, nodeid, times=settings.times)


def _compared(profile: Profiled, path: Path) -> Compared:
    """Compare; a baseline that cannot be read is a broken one."""
    try:
        return _compare(profile, path)
    except GuessError as error:
        return Compared(path, "broken", Outcome(broken=(printable(str(error)),)))


def _compare(profile: Profiled, path: Path) -> Compared:
    guess = read_hunch(path).guess
    trace = profile.look.facts.tree.trace
    fitting, foreign = settle_times(guess, trace)
    outcome = outcome_of(profile.judge(fitting), profile.look)
    new = [one for one in new_findings(profile.look.checked.findings, guess) if one.id in _FAILING_FINDINGS]
    found = tuple(
        f"new {one.severity} {one.id} in {printable(one.scope)}: {printable(one.summary)}" for one in new
    )
    outcome = outcome.and_then(Outcome(broken=found, untold=tuple(untold_of(one) for one in foreign)))
    return Compared(path, "broken" if outcome.broken else "held", outcome, _notes(guess, trace))


def _update(profile: Profiled, path: Path, nodeid: str, *, times: bool) -> Compared:
    """Rewrite what no longer holds; what cannot even be read is rewritten, too."""
    try:
        compared = _compare(profile, path)
    except GuessError:
        return _write(profile, path, nodeid, "updated", times=times)
    if compared.status == "held":
        return replace(compared, status="unchanged")
    return _write(profile, path, nodeid, "updated", times=times)


def _write(profile: Profiled, path: Path, nodeid: str, status: Status, *, times: bool) -> Compared:
    try:
        guess = _seen(profile.look, times=times)
    except GuessError:  # nothing ran that could be claimed
        return Compared(path, "empty")
    guess = replace(guess, context={**guess.context, **({TEST: nodeid} if writable(nodeid) else {})})
    comments = (
        f"What {nodeid} shows.",
        "pytest --tracehunch-compare holds the test against it, --tracehunch-update rewrites it.",
    )
    _write_whole(path, write_hunch(guess, comments).encode())
    return Compared(path, status)


def _seen(look: Look, *, times: bool) -> Guess:
    return replace(baseline(look.facts, times=times), known=known_of(look.checked.findings))


def _notes(guess: Guess, trace: Trace) -> tuple[str, ...]:
    return tuple(
        f"the baseline was made with {name} {printable(expected)}, this is {printable(seen)}"
        for name, expected, seen in differences(guess.context, trace)
    )


def _device(trace: Trace) -> str:
    return slug(context_of(trace).get("device") or ("gpu" if len(trace.gpu.row) else "cpu"))


def _write_whole(path: Path, data: bytes) -> None:
    """Write beside the place first, and move it there: another worker sees all of the file, or none."""
    partial = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=f".{path.stem[:40]}.", dir=path.parent, delete=False) as file:
            partial = Path(file.name)
            file.write(data)
        partial.chmod(0o666 & ~_umask())
        partial.replace(path)
    except OSError as error:
        if partial is not None:
            partial.unlink(missing_ok=True)
        todo = "choose another folder with the ini key tracehunch_baselines"
        raise TracehunchError(f"cannot write {path}", error.strerror or str(error), todo) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
