"""The command line, in this process, in a folder that looks like a checkout."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracehunch.cli import main

ROOT = Path(__file__).parents[2]


@dataclass
class Command:
    """Runs ``tracehunch`` and returns what click's runner does."""

    folder: Path

    def __call__(self, *arguments: str, codes: tuple[int, ...] = (0, 1)) -> Result:
        result = CliRunner().invoke(main, list(arguments))
        assert result.exit_code in codes, (arguments, result.exit_code, result.stderr)
        return result


@pytest.fixture
def tracehunch(tmp_path, monkeypatch):
    """Return a command that runs in its own folder, with tests/ and examples/ in it."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    for name, value in {"COLUMNS": "80", "NO_COLOR": "1", "TRACEHUNCH_JOURNAL": "journal.jsonl"}.items():
        monkeypatch.setenv(name, value)
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return Command(tmp_path)
