"""Every command in the README runs, and what it shows is what comes out.

A fence ``console`` holds ``$ command`` lines and their whole output, compared byte by byte. ``console live``
is output of a machine that is not this one (an H200, a certain CPU): its commands run here too, but only have
to succeed. ``toml`` and ``python`` fences are used as they stand. TRACEHUNCH_UPDATE_SNAPSHOTS=1 rewrites the
console fences.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FENCE = re.compile(r"^```(console live|console|sh|toml|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FENCES = [(m.group(1), m.group(2)) for m in FENCE.finditer(README.read_text(encoding="utf-8"))]
UPDATE = bool(os.environ.get("TRACEHUNCH_UPDATE_SNAPSHOTS"))

MAKE = {"make try", "make test"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place to run in that looks like a checkout and may be written to."""
    for name in ("tests", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    for kind, text in FENCES:
        if kind == "toml":
            (tmp_path / "hunch.toml").write_text(text, encoding="utf-8")
    return tmp_path


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
        "TRACEHUNCH_JOURNAL": str(folder / "journal.jsonl"),
    }
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip


def _commands(text: str) -> list[tuple[str, str]]:
    """Commands of a fence and the output under each."""
    parts = re.split(r"^\$ (.+)\n", text, flags=re.MULTILINE)
    return [(parts[i], parts[i + 1]) for i in range(1, len(parts), 2)]


CONSOLE = [(kind, _commands(text)) for kind, text in FENCES if kind.startswith("console")]


@pytest.mark.parametrize(("kind", "commands"), CONSOLE, ids=[one[0][0] for _, one in CONSOLE])
def test_console(kind: str, commands: list[tuple[str, str]], folder: Path) -> None:
    """The commands of a fence run one after the other in one folder."""
    for command, shown in commands:
        done = _run(command, folder)
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr
        if kind == "console live":
            assert done.stdout.strip()
        elif UPDATE:
            text = README.read_text(encoding="utf-8")
            text = text.replace(f"$ {command}\n{shown}", f"$ {command}\n{done.stdout}", 1)
            README.write_text(text, encoding="utf-8")
        else:
            assert done.stdout == shown


SHELL = [line for kind, text in FENCES if kind == "sh" for line in text.splitlines() if line]


@pytest.mark.parametrize("line", SHELL)
def test_setup_line(line: str, tmp_path: Path) -> None:
    """Set-up commands: the make targets do what is said, pip takes what is named."""
    words = shlex.split(line, comments=True)
    if " ".join(words) in MAKE:
        done = subprocess.run([*words, "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert {"try": "tracehunch attention", "test": "pytest"}[words[1]] in done.stdout
    else:
        assert words[:2] == ["pip", "install"], line
        install = [sys.executable, "-m", *words[:2], "--no-deps", "--no-build-isolation", "--quiet"]
        target = ["--target", str(tmp_path), *words[2:]]
        done = subprocess.run([*install, *target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "tracehunch" / "recorded" / "naive.json.gz").is_file()
        assert (tmp_path / "tracehunch" / "kernels" / "rules" / "cublas.toml").is_file()


PYTHON = [text for kind, text in FENCES if kind == "python"]


@pytest.mark.parametrize("text", PYTHON)
def test_python(text: str, folder: Path) -> None:
    is_test = "def test_" in text
    if is_test:
        (folder / "test_readme_example.py").write_text(text, encoding="utf-8")
    how = ["-m", "pytest", "-q", "test_readme_example.py"] if is_test else ["-c", text]
    done = subprocess.run(
        [sys.executable, *how], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout


def test_the_readme_shows_every_verb() -> None:
    shown = " ".join(command for _, commands in CONSOLE for command, _ in commands)
    for verb in ("look", "attention", "check", "guess", "diff", "run", "explain"):
        assert f"tracehunch {verb}" in shown
