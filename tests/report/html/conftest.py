"""Pages in a real browser, and as a parser sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass
class Visit:
    """An open page, and all that it did besides showing itself."""

    page: Any
    misdeeds: list[str] = field(default_factory=list)
    address: str = ""

    def eval(self, script: str, *args: Any) -> Any:
        return self.page.evaluate(script, *args)

    def ready(self) -> Visit:
        """Wait for the timeline, where there is one."""
        if self.page.query_selector("#tl"):
            self.page.wait_for_selector("#tl[data-ready]")
        return self

    def view(self) -> tuple[float, float]:
        """Return the span of time that the timeline shows, after what is under way is drawn."""
        self.eval("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        start, end = self.page.get_attribute("#tl-lanes", "data-view").split()
        return float(start), float(end)

    def open(self, path: Path) -> Visit:
        """Go to another file; what the one before did is forgotten."""
        self.misdeeds.clear()
        self.address = path.as_uri()
        self.page.goto(self.address)
        return self.ready()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Visit]]:
    """Open HTML from disk; whatever it requests, logs, throws or asks is noted."""
    contexts = []

    def open_(html: bytes, *, width: int = 1280, fragment: str = "", **options: Any) -> Visit:
        path = tmp_path / "report.html"
        path.write_bytes(html)
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        seen = Visit(context.new_page())
        seen.address = path.as_uri()
        noted = seen.misdeeds
        seen.page.on("console", lambda message: noted.append(f"console: {message.text}"))
        seen.page.on("pageerror", lambda error: noted.append(f"error: {error}"))
        seen.page.on("dialog", lambda dialog: (noted.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        seen.page.on(
            "request",
            lambda request: (
                None if request.url.startswith(seen.address) else noted.append(f"request: {request.url[:80]}")
            ),
        )
        seen.page.goto(seen.address + fragment)
        return seen

    yield open_
    for context in contexts:
        context.close()


class Parsed(HTMLParser):
    """Every tag with its attributes, tables by caption, and errors that a browser would mend silently."""

    VOID = frozenset({"meta", "input", "br", "hr", "img"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.tables: dict[str, list[list[tuple[str, float | None]]]] = {}
        self.blocks: dict[str, str] = {}
        self._caption = ""
        self._block = ""
        self._row: list[tuple[str, float | None]] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "caption":
            self._caption = ""
        if tag == "tr":
            self._row = []
        if tag in {"th", "td"} and self._row is not None:
            value = given.get("data-v")
            self._row.append(("", None if value is None else float(value)))
        if tag == "script":
            self._block = given.get("id") or ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")
        if tag == "tr" and self._row is not None:
            self.tables.setdefault(self._caption, []).append(self._row)
            self._row = None

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.blocks[self._block] = self.blocks.get(self._block, "") + data
        if self.open and self.open[-1] == "caption":
            self._caption += data
        if self._row and ("td" in self.open[-3:] or "th" in self.open[-3:]):
            shown, value = self._row[-1]
            self._row[-1] = (shown + data, value)

    def column(self, caption: str, heading: str) -> list[tuple[str, float | None]]:
        """Return a table's column: what each cell shows, and what it is sorted by."""
        head, *rows = self.tables[caption]
        at = [shown for shown, _ in head].index(heading)
        return [row[at] for row in rows]


@pytest.fixture(scope="session")
def parse() -> type[Parsed]:
    return Parsed
