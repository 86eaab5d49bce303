"""pytest fixture and marker that hold a profile of a test against what was guessed.

Every pytest run with tracehunch installed loads this module: it imports pytest and nothing else that is slow.
All that needs a trace is loaded by the first test that profiles something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tracehunch.pytest_plugin import _settings
from tracehunch.pytest_plugin._values import TYPES, plain

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tracehunch.pytest_plugin._hunch import Hunch
    from tracehunch.pytest_plugin._run import TestRun

_RUN: pytest.StashKey[TestRun] = pytest.StashKey()
_WHOLE = pytest.StashKey[bool]()
_FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, all of which begin with --tracehunch-, and the ini key."""
    _settings.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    _settings.configure(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give a marked test the fixture; one that does not use it itself is profiled as a whole."""
    names = getattr(item, "fixturenames", None)
    if names is None or item.get_closest_marker(_settings.MARKER) is None or "hunch" in names:
        return
    item.fixturenames = [*names, "hunch"]  # type: ignore[attr-defined]  # a copy: siblings share the list
    item.stash[_WHOLE] = True


@pytest.fixture
def hunch(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hunch]:
    """Profile what a test runs, to hold it to what was guessed.

    A function, p = hunch(function, *args), or a block, with hunch("label") as p. Then, for one,
    assert p.facts["kernels"] == 5; there are p.ops["copy_"], p.check(sdpa="flash"), p.look, p.verdict,
    p.trace_path and p.result, too.
    """
    from tracehunch.pytest_plugin import _run  # noqa: PLC0415  # numpy and msgspec load with the first use

    item = request.node
    folder = tmp_path_factory.getbasetemp() / "tracehunch"
    run = item.stash[_RUN] = _run.prepare(item, folder, whole=item.stash.get(_WHOLE, default=False))
    yield run.hunch
    if run.settings.traces is None and not item.stash.get(_FAILED, default=False):
        for profile in run.profiles:
            profile.trace_path.unlink(missing_ok=True)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Profile a marked test, and hold what was profiled to its claims."""
    run = item.stash.get(_RUN, None)
    if run is None:
        _refuse_unprofiled(item)
        return (yield)
    from tracehunch.pytest_plugin import _run  # noqa: PLC0415  # as above

    return (yield from _run.profiled_call(item, run))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put figures into the report, and for a failed test the verdict."""
    run = item.stash.get(_RUN, None)
    if run is not None and call.excinfo is not None:
        from tracehunch.pytest_plugin import _run  # noqa: PLC0415  # as above

        _run.end_in_test(call.excinfo.value)
    report = yield
    if run is None:
        return report
    report.user_properties = [(name, plain(value)) for name, value in report.user_properties]
    if report.when == "call":
        from tracehunch.pytest_plugin import _figures  # noqa: PLC0415  # as above

        report.tracehunch = run.told.packed()  # type: ignore[attr-defined]  # pytest takes it to the controller
        if report.failed:
            item.stash[_FAILED] = True
            report.sections += _figures.sections(run.profiles)
    return report


def pytest_assertrepr_compare(
    config: pytest.Config, op: str, left: object, right: object
) -> list[str] | None:
    """Explain a comparison with a fact that failed."""
    if not isinstance(left, TYPES) and not isinstance(right, TYPES):
        return None
    from tracehunch.pytest_plugin import _assertion  # noqa: PLC0415  # as above

    return _assertion.explained(op, left, right, verbosity=config.get_verbosity())


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Tell the figures where asked for or where something broke, and what became of baselines."""
    reports = [one for some in terminalreporter.stats.values() for one in some if hasattr(one, "tracehunch")]
    if not reports and not _settings.settings_of(config).mode:
        return
    from tracehunch.pytest_plugin import _summary  # noqa: PLC0415  # as above

    _summary.write(terminalreporter, reports, exitstatus)


def _refuse_unprofiled(item: pytest.Item) -> None:
    """Fail a marked test that would pass unchecked, as its fixture ``hunch`` is another one, or none."""
    if item.get_closest_marker(_settings.MARKER) is None:
        return
    why = "its fixture 'hunch' is not tracehunch's: rename it"
    if not hasattr(item, "fixturenames"):
        why = f"a {type(item).__name__} takes no fixtures"
    pytest.fail(f"@pytest.mark.tracehunch: nothing of this test is profiled; {why}", pytrace=False)
