"""Every cell in docs/notebook.md runs, and its table lists the options there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tracehunch.notebook.options import usage

PAGE = (Path(__file__).parents[2] / "docs" / "notebook.md").read_text()
CELLS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_each_cell_of_the_page_runs(typist: Any) -> None:
    shown: dict[str, Any] = {}
    for cell in CELLS:
        shown[cell] = typist.run(cell)
        assert typist.reply["status"] == "ok", cell
    reports = [one["data"]["text/plain"] for cell in CELLS for one in shown[cell] if "text/html" in str(one)]
    assert len(reports) == 3
    assert "2 held" in reports[1]
    assert "1 held" in reports[2]
    assert shown[CELLS[-1]][0]["data"]["text/plain"] == "(3, 1)"


def test_the_page_lists_the_options_there_are() -> None:
    said = set(re.findall(r"^\| `(--?[a-z-]+)", PAGE, re.MULTILINE))
    there = set(re.findall(r"^  (--?[a-z-]+)", usage(), re.MULTILINE))
    assert said == there
