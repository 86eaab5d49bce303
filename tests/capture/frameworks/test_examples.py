"""The example programs run as they are, and docs/frameworks.md quotes them."""

from __future__ import annotations

import re
import runpy
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from tracehunch import callbacks
from tracehunch.capture.recorder import Recording

_ROOT = Path(__file__).parents[3]
EXAMPLES = _ROOT / "examples" / "frameworks"
PAGE = (_ROOT / "docs" / "frameworks.md").read_text()


@pytest.mark.filterwarnings("ignore")  # the frameworks' advice on loaders
@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("transformers_trainer", "transformers"),
        ("accelerate_loop", "accelerate"),
        ("lightning_fit", "lightning.pytorch"),
    ],
)
def test_an_example_records_three_updates_and_its_guess_holds(  # noqa: PLR0917  # pytest passes all by name
    name: str, needs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], count: Any, steps: Any,
) -> None:  # fmt: skip
    pytest.importorskip("torch")
    pytest.importorskip(needs)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    names = count(tmp_path / "train.json.gz")
    assert (len(steps(names)), names["Optimizer.step#AdamW.step"]) == (3, 3)
    assert "Verdict  1 held, 0 surprises" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["transformers", "accelerate", "lightning"])
def test_the_page_quotes_the_examples(name: str) -> None:
    code = "".join(path.read_text() for path in EXAMPLES.glob("*.py"))
    plain = re.sub(r"\s+", " ", code)
    quoted = [one for one in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if f"for_{name}" in one]
    assert len(quoted) == 1
    assert re.sub(r"\s+", " ", quoted[0]).strip() in plain


def test_the_page_gives_the_defaults_there_are() -> None:
    recording = Recording()
    for option in ("steps", "skip", "warmup", "shapes", "stacks", "memory"):
        assert f"`{option}={getattr(recording, option)}`" in PAGE
    makers = (callbacks.for_transformers, callbacks.for_accelerate, callbacks.for_lightning)
    for make in makers:
        given = signature(make).parameters
        assert f"`{given['path'].default}`" in PAGE
        assert f"`tell={given['tell'].default}`" in PAGE
