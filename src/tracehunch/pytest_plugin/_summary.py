"""The end of the run: figures with -v or where something broke, claims not told, and baselines."""

from __future__ import annotations

import tomllib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from tracehunch.facts.vocabulary import KEYS
from tracehunch.pytest_plugin._baselines import TEST
from tracehunch.pytest_plugin._settings import settings_of
from tracehunch.pytest_plugin._told import Told, unpacked
from tracehunch.report.verdict_text import value_text
from tracehunch.units import plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracehunch.pytest_plugin._settings import Settings

_SHOWN: Final = 10
_UNITS: Final = {key.json_name: key.unit for key in KEYS.values()}
_WORDS: Final = {"gpu_time_us": "GPU", "cpu_time_us": "CPU", "sdpa.backend": "SDPA"}
_WRITTEN: Final = {
    "saved": "saved",
    "updated": "updated",
    "unchanged": "unchanged",
    "held": "held",
    "broken": "broken",
}


def write(reporter: Any, reports: Sequence[pytest.TestReport], exitstatus: int) -> None:
    """Write the section, if there is anything to say."""
    config = reporter.config
    settings = settings_of(config)
    told = [(one.nodeid, unpacked(one.tracehunch)) for one in reports]
    failed = {one.nodeid for one in reports if one.failed}  # and not those that were expected to break
    verbose = config.get_verbosity() > 0
    lines = [
        line
        for nodeid, one in told
        if verbose or (one.broken and nodeid in failed)
        for line in _figures(nodeid, one)
    ]
    lines += _untold([one for _, one in told], strict=settings.strict)
    lines += _baselines(told, settings)
    if settings.mode and _is_whole(reporter, exitstatus):
        ran = {one.nodeid for some in reporter.stats.values() for one in some if hasattr(one, "nodeid")}
        lines += _stale(settings, ran)
    if lines:
        reporter.section("tracehunch")
        for line in lines:
            reporter.line(line)


def _figures(nodeid: str, told: Told) -> Iterator[str]:
    for label, figures in told.figures:
        parts = [_figure(name, value) for name, value in figures.items()]
        yield f"{printable(nodeid)} [{printable(label)}]: {', '.join(parts) or 'no op'}"


def _figure(name: str, value: object) -> str:
    word = _WORDS.get(name, name.replace("_", " "))
    return f"{word} {value_text(value, _UNITS[name])}"


def _untold(told: Sequence[Told], *, strict: bool) -> Iterator[str]:
    """Say what was not checked, by reason: on a machine without a GPU it is all the same one."""
    reasons = Counter(reason for one in told for _, _, reason in one.untold)
    if not reasons:
        return
    how = "" if strict else "; --tracehunch-strict makes that a failure"
    yield f"{plural(reasons.total(), 'claim')} not checked{how}"
    for reason, n in reasons.most_common(_SHOWN):
        keys = sorted({key for one in told for key, _, why in one.untold if why == reason})
        shown = ", ".join(keys[:_SHOWN]) + (" ..." if len(keys) > _SHOWN else "")
        yield f"  {printable(reason)}: {shown} ({plural(n, 'claim')})"
    if len(reasons) > _SHOWN:
        yield f"  and {len(reasons) - _SHOWN} more reasons"


def _baselines(told: Sequence[tuple[str, Told]], settings: Settings) -> Iterator[str]:
    """Say how many baselines were written or compared, and which are missing."""
    if not settings.mode:
        return
    statuses = Counter(status for _, one in told for status, _ in one.baselines)
    parts = [f"{statuses[status]} {word}" for status, word in _WRITTEN.items() if statuses[status]]
    yield f"baselines in {_folder(settings)}: {', '.join(parts) or 'none'}"
    missing = [
        (nodeid, path) for nodeid, one in told for status, path in one.baselines if status == "missing"
    ]
    if missing:
        todo = "not compared; --tracehunch-update writes what is missing"
        yield f"  {plural(len(missing), 'profile')} without a baseline: {todo}"
        yield from _listed([f"{printable(nodeid)} ({printable(path)})" for nodeid, path in missing])
    if statuses["empty"] and settings.mode != "compare":
        yield f"  {plural(statuses['empty'], 'profile')} without any op: nothing to save"


def _stale(settings: Settings, ran: set[str]) -> Iterator[str]:
    """Name the baselines whose test is gone, of the files that were run as a whole or are gone themselves."""
    files = {nodeid.partition("::")[0] for nodeid in ran}
    stale = []
    for path in sorted(settings.baselines.rglob("*.toml")):
        nodeid = _test_of(path)
        file = nodeid.partition("::")[0]
        gone = file in files or not (settings.root / file).exists()
        if nodeid and nodeid not in ran and gone:
            stale.append(f"{path.relative_to(settings.baselines).as_posix()} ({printable(nodeid)})")
    if stale:
        yield f"  {plural(len(stale), 'baseline')} of tests that are gone; delete what is not needed:"
        yield from _listed(stale)


def _test_of(path: Path) -> str:
    """Return the test that a baseline names; "" where it is none, or cannot be read."""
    try:
        head = tomllib.loads(path.read_text(encoding="utf-8"))["hunch"]["context"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return str(head.get(TEST, ""))


def _is_whole(reporter: Any, exitstatus: int) -> bool:
    """Tell whether all tests of each file ran: only then is a test that did not run gone."""
    chosen = any("::" in str(one) for one in reporter.config.args) or bool(reporter.stats.get("deselected"))
    option = reporter.config.option
    filtered = any(
        getattr(option, name, None) for name in ("keyword", "markexpr", "deselect", "lf", "stepwise")
    )
    ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    errors = reporter.stats.get("error", ())
    unknown = any(isinstance(one, pytest.CollectReport) for one in errors)  # which tests a file has
    stopped = unknown or bool(getattr(option, "maxfail", 0))
    return ended and not chosen and not filtered and not stopped


def _listed(texts: Sequence[str]) -> Iterator[str]:
    for text in texts[:_SHOWN]:
        yield f"    {text}"
    if len(texts) > _SHOWN:
        yield f"    and {len(texts) - _SHOWN} more"


def _folder(settings: Settings) -> str:
    folder = settings.baselines
    return (
        folder.relative_to(settings.root).as_posix() if folder.is_relative_to(settings.root) else str(folder)
    )
