"""The example notebook, executed as JupyterLab, VS Code or papermill would, and what they would render."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

EXAMPLE = Path(__file__).parents[2] / "examples" / "hunch.ipynb"
_HARMLESS = {"div", "span", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code", "i", "b",
             "details", "summary"}  # fmt: skip


class Elements(HTMLParser):
    """The elements and attributes of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.styles: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attributes}
        self.styles += [value or "" for name, value in attributes if name == "style"]


def _executed(notebook: Any, kernel: str, folder: Path) -> Any:
    nbclient.NotebookClient(
        notebook, kernel_name=kernel, timeout=600, startup_timeout=600,
        resources={"metadata": {"path": str(folder)}},
    ).execute()  # fmt: skip
    return notebook


@pytest.fixture(scope="module")
def example(kernel: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return _executed(nbformat.read(EXAMPLE, 4), kernel, tmp_path_factory.mktemp("example"))


def _html(cell: Any) -> list[str]:
    return [one.data["text/html"] for one in cell.outputs if "text/html" in one.get("data", {})]


def _cell(notebook: Any, name: str) -> Any:
    return next(one for one in notebook.cells if one.id == name)


def test_the_example_ships_without_outputs_and_is_valid() -> None:
    notebook = nbformat.read(EXAMPLE, 4)
    nbformat.validate(notebook)
    assert all(not one.outputs for one in notebook.cells if one.cell_type == "code")


def test_each_profiled_cell_of_the_example_shows_one_report(example: Any) -> None:
    profiled = [one for one in example.cells if one.source.startswith("%%hunch")]
    assert [len(_html(one)) for one in profiled] == [1, 1, 1]
    assert "1 held, 1 surprise" in _html(_cell(example, "by-hand"))[0]
    assert "no prompt" in _cell(example, "fused").outputs[0].data["text/plain"]
    assert _cell(example, "facts").outputs[0].data["text/plain"] == "(True, 'none')"


def test_every_report_has_a_text_for_viewers_without_html(example: Any) -> None:
    outputs = [one for cell in example.cells for one in cell.get("outputs", [])]
    assert all("text/plain" in one.data for one in outputs if "text/html" in one.get("data", {}))


def test_names_that_a_cell_wrote_are_text_and_nothing_is_loaded(typist: Any) -> None:
    name = "<img src=x onerror=alert(1)></code><script>alert(1)</script>"  # Kineto escapes no quotes
    cell = f"%%hunch sdpa.backend=none\nwith torch.profiler.record_function({name!r}):\n    x.sum();"
    html = next(one["data"]["text/html"] for one in typist.run(cell) if "text/html" in one.get("data", {}))
    found = Elements(html)
    assert "&lt;script&gt;" in html
    assert found.names <= _HARMLESS
    assert found.attributes <= {"style", "title", "open"}
    assert not any("url" in style or "import" in style for style in found.styles)
