"""Where tests find real traces, and what they say when some are not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
H200 = DATA / "h200"
CASES = DATA / "cases"
EXTRA = Path(os.environ.get("TRACEHUNCH_EXTRA_TRACES", Path(__file__).parents[2] / "shared" / "traces"))
"""Traces that are too large or not ours to ship: ``public/`` (other projects') and ``h200/big_rank0.json.xz``."""

_missing: list[str] = []


@pytest.fixture(scope="session")
def h200() -> Path:
    """The recorded H200 traces."""
    return H200


@pytest.fixture(scope="session")
def cases() -> Path:
    """The damaged and odd files, with expected.json."""
    return CASES / "public"


@pytest.fixture(scope="session")
def public_traces() -> Path:
    """Other projects' traces; the test is skipped, and the end of the run says so, where they are not."""
    folder = EXTRA / "public"
    if not folder.is_dir():
        _missing.append(f"{folder}: other projects' traces")
        pytest.skip(f"no traces at {folder} (set TRACEHUNCH_EXTRA_TRACES)")
    return folder


@pytest.fixture(scope="session")
def big_trace() -> Path:
    """A 275 MB trace; the test is skipped, and the end of the run says so, where it is not."""
    path = EXTRA / "h200" / "big_rank0.json.xz"
    if not path.is_file():
        _missing.append(f"{path}: the 275 MB trace")
        pytest.skip(f"no trace at {path} (set TRACEHUNCH_EXTRA_TRACES)")
    return path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what was not tested for want of its traces."""
    skipped = [r for r in terminalreporter.stats.get("skipped", []) if "TRACEHUNCH_EXTRA_TRACES" in str(r.longrepr)]
    if skipped:
        terminalreporter.section("NOT TESTED: traces that are not part of this repository were missing", red=True)
        for report in skipped:
            terminalreporter.line(f"{report.nodeid}: {report.longrepr[2] if isinstance(report.longrepr, tuple) else ''}")
