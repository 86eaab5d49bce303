"""Where tests find real traces, and what they say when some are not there."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest_plugins = ["pytester"]

# on a busy machine an example may take any time; which ones are drawn stays as it is: with CI set, the same
settings.register_profile(
    "any machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

DATA = Path(__file__).parent / "data"
H200 = DATA / "h200"
CASES = DATA / "cases"
_BESIDE = Path(__file__).parents[2] / "shared" / "traces"
EXTRA = Path(os.environ.get("TRACEHUNCH_EXTRA_TRACES", _BESIDE))
"""Too large or not ours to ship: ``public/`` (other projects' traces), ``h200/big_rank0.json.xz``."""


@pytest.fixture(scope="session")
def h200() -> Path:
    """The recorded H200 traces."""
    return H200


@pytest.fixture(scope="session")
def cpu() -> Path:
    """Traces of small models on a CPU."""
    return DATA / "cpu"


@pytest.fixture(scope="session")
def cases() -> Path:
    """The damaged and odd files, with expected.json."""
    return CASES / "public"


@pytest.fixture(scope="session")
def public_traces() -> Path:
    """Other projects' traces; the test is skipped, and the end of the run says so, where they are not."""
    folder = EXTRA / "public"
    if not folder.is_dir():
        pytest.skip(f"no traces at {folder} (set TRACEHUNCH_EXTRA_TRACES)")
    return folder


@pytest.fixture(scope="session")
def big_trace() -> Path:
    """A 275 MB trace; the test is skipped, and the end of the run says so, where it is not."""
    path = EXTRA / "h200" / "big_rank0.json.xz"
    if not path.is_file():
        pytest.skip(f"no trace at {path} (set TRACEHUNCH_EXTRA_TRACES)")
    return path


_SLOWEST_MS = 180_000  # a page may be slow to come on a busy machine; Playwright's own limit is 30 s
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_BROWSER_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
)


@pytest.fixture(scope="module")  # no longer: while it runs, nothing else of the process can use asyncio
def browser() -> Iterator[Any]:
    """A real browser; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium on this machine (Debian: apt install chromium)")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=list(_BROWSER_FLAGS), timeout=_SLOWEST_MS)
        opened.new_context = partial(_patient, opened.new_context)
        yield opened
        opened.close()


def _patient(new_context: Callable[..., Any], **options: Any) -> Any:
    context = new_context(**options)
    context.set_default_timeout(_SLOWEST_MS)
    return context


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what was not tested for want of its traces."""
    skipped = terminalreporter.stats.get("skipped", [])
    untested = [report for report in skipped if "TRACEHUNCH_EXTRA_TRACES" in str(report.longrepr)]
    if untested:
        terminalreporter.section("NOT TESTED: traces that are not part of this repository", red=True)
        for report in untested:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            terminalreporter.line(f"{report.nodeid}: {reason}")
