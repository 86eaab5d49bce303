import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def run(arguments, folder):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_on_python_runs_from_top_to_bottom_and_shows_what_comes(tmp_path):
    page = (ROOT / "docs/python.md").read_text()
    (tmp_path / "page.py").write_text("\n".join(blocks(page, "python")))
    printed = run(["page.py"], tmp_path)
    for shown in blocks(page, "text"):
        assert shown in printed
    assert "0 surprises" in printed


def test_the_example_runs_and_its_guess_holds(tmp_path):
    printed = run([ROOT / "examples/python_api.py"], tmp_path)
    assert "attention: flash" in printed
    assert "training: 3 steps" in printed
    assert "did you mean kernels?" in printed
    assert list(tmp_path.iterdir()) == []
