"""Names from a trace that attack whatever shows them: no format may let them act."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tracehunch.judge import examine
from tracehunch.report import json_report, markdown, notebook_html, table, terminal
from tracehunch.report.layout import View
from tracehunch.trace import read_bytes
from tracehunch.tree import link

NAMES = [
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31mred\x9b0m",
    "user\u202etxt.exe",
    "[red]not markup[/red]",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a | b | c",
    "`code` **bold** _it_ ~~no~~ [link](http://evil.example) ![i](x)",
    "@octocat please see #1 and https://evil.example www.evil.example",
    "</code></td><h1>big",
    "$x^2$ &lt; &amp;",
    "{0} %s %n {name}",
    "=cmd|' /C calc'!A0",
    "line\r\nbreak\tand\x00nul",
    "half \ud83d pair",
    "```",
    "模型.前向 Прямой проход",
    "k" * 64_000,
]


def trace() -> bytes:
    events: list[dict[str, Any]] = []
    for at, name in enumerate(NAMES):
        start = 100 * at
        host = {"ph": "X", "pid": 1, "tid": 1}
        events += [
            {**host, "cat": "user_annotation", "name": name, "ts": start, "dur": 50},
            {**host, "cat": "cpu_op", "name": name, "ts": start + 1, "dur": 40},
            {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 2, "dur": 3},
            {"ph": "X", "pid": 0, "tid": 7, "cat": "kernel", "name": name, "ts": start + 60, "dur": 9},
        ]
        events[-2]["args"] = {"correlation": at + 1}
        events[-1]["args"] = {"correlation": at + 1, "device": 0, "stream": 7}
    devices = [
        {"id": 0, "name": "GPU \x1b[31m<b>@me</b>|", "computeMajor": 9, "computeMinor": 0, "numSms": 1}
    ]
    return json.dumps({"deviceProperties": devices, "traceEvents": events}).encode()


@pytest.fixture(scope="module")
def look() -> Any:
    return examine(read_bytes(trace(), "evil\x1b[31m.json"))


@pytest.fixture(scope="module")
def reports(look: Any) -> dict[str, str]:
    selection = terminal.Selection(top=100, all_scopes=True)
    return {
        "terminal": terminal.render(look, selection=selection),
        "wide": terminal.render(look, view=View(width=160), selection=selection),
        "markdown": markdown.render(look, selection=selection),
        "json": json_report.render(look).decode(),
        "table": table.render(look.facts.tree, top=100),
        "notebook": notebook_html.look_html(look, source="<b>&\x1b[31m"),
    }


FORMATS = ["terminal", "wide", "markdown", "json", "table", "notebook"]


@pytest.mark.parametrize("name", FORMATS)
def test_no_control_character_reaches_the_output(reports: dict[str, str], name: str) -> None:
    assert (
        re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", reports[name])
        is None
    )


@pytest.mark.parametrize("name", FORMATS)
def test_no_line_is_endless(reports: dict[str, str], name: str) -> None:
    assert (
        max(map(len, reports[name].splitlines())) <= 2_000 if name not in {"markdown", "notebook"} else True
    )


@pytest.mark.parametrize("name", ["terminal", "wide", "json"])
def test_names_are_shown_as_they_are(reports: dict[str, str], name: str) -> None:
    assert "[red]not markup[/red]" in reports[name]
    assert "模型.前向 Прямой проход" in reports[name]


def test_colour_is_only_our_own(look: Any) -> None:
    text = terminal.render(
        look, view=View(colour=True), selection=terminal.Selection(top=100, all_scopes=True)
    )
    assert set(re.findall("\x1b[^m]*m", text)) <= {
        f"\x1b[{c}m" for c in ("0", "1", "2", "31", "33", "36", "1;31", "1;33")
    }
    assert text.count("\x1b") == len(re.findall("\x1b\\[[0-9;]+m", text))


def test_markdown_holds_no_foreign_markup(reports: dict[str, str]) -> None:
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(reports["markdown"])
    tags = set(re.findall(r"</?([a-z0-9]+)", rendered))
    ours = {
        "h2",
        "h3",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "code",
        "p",
        "ul",
        "li",
        "strong",
        "details",
        "summary",
    }
    assert tags <= ours
    assert "<a " not in rendered
    assert "<em>" not in rendered


def test_markdown_tables_keep_their_columns(reports: dict[str, str]) -> None:
    widths = [line.count("|") for line in reports["markdown"].splitlines() if line.startswith("| ")]
    assert set(widths) <= {3, 13, 9}


def test_markdown_mentions_nobody_and_links_nowhere(reports: dict[str, str]) -> None:
    assert "@" not in reports["markdown"]
    assert "://" not in reports["markdown"]
    assert "www." not in reports["markdown"]


def test_html_of_a_notebook_holds_our_elements_only(reports: dict[str, str]) -> None:
    elements = Elements()
    elements.feed(reports["notebook"])
    ours = {"div", "span", "code", "details", "summary", "ul", "li", "i"}
    ours |= {"table", "thead", "tbody", "tr", "th", "td"}
    assert elements.names <= ours
    assert elements.attributes <= {"style", "title", "open"}
    assert elements.open == []


class Elements(HTMLParser):
    """Which elements and attributes there are, and which were not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_no_name_ends_the_tables_code_block(look: Any) -> None:
    text = table.render_markdown(look.facts.tree, top=100)
    rendered = MarkdownIt().render(text)
    assert rendered.count("<pre>") == 1
    assert rendered.endswith("</code></pre>\n")


def test_the_tree_of_it_links() -> None:
    assert len(link(read_bytes(trace(), "x")).trace) == 4 * len(NAMES)
