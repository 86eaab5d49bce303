"""Starting is quick because the heavy libraries wait until a trace is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"numpy", "msgspec", "torch", "rich"}
TRACE = Path(__file__).parent / "data" / "h200" / "seeds" / "naive.json.gz"
RUN = "import tracehunch.cli as cli\ntry: cli.main({args!r})\nexcept SystemExit: pass"


def loaded_by(code):
    """Which heavy libraries a fresh interpreter has loaded after some code."""
    code += f"\nimport sys; print(*({HEAVY!r} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "code", ["import tracehunch", *(RUN.format(args=[*verb, "--help"]) for verb in ([], ["look"], ["ranks"]))]
)
def test_starting_loads_nothing_heavy(code):
    assert loaded_by(code) == set()


def test_the_test_above_can_fail():
    assert loaded_by(RUN.format(args=["look", str(TRACE)])) >= {"numpy", "msgspec"}
    assert loaded_by("import tracehunch; tracehunch.Claim") >= {"numpy", "msgspec"}
