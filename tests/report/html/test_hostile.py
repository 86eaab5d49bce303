"""Files that attack a page: whatever is in them, it neither asks, requests nor fails."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import tracehunch
from tracehunch.errors import ReadError
from tracehunch.report.html import look_page
from tracehunch.report.html.page import page
from tracehunch.report.html.section import Section

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MARKUP = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


HOSTILE = (
    "injection",
    "invalid_utf8",
    "lone_surr",
    "long_names",
    "odd_names",
    "path",
    "raw_control",
    "unicode",
)
ACTIVE = frozenset(
    {"img", "iframe", "object", "embed", "link", "base", "form", "image", "use", "audio", "video"}
)


@pytest.fixture(scope="module")
def pages(cases: Path) -> dict[str, bytes]:
    """Return the page of every case that can be read."""
    found = {}
    for case in sorted(cases.iterdir()):
        with suppress(ReadError):
            found[case.name] = look_page.render(tracehunch.look(case), source=case.name)
    return found


def test_no_case_adds_an_active_element_or_a_script(pages: dict[str, bytes], parse: type[Any]) -> None:
    for name, html in pages.items():
        found = parse(html.decode())
        assert not found.wrong, name
        assert not ACTIVE.intersection(tag for tag, _ in found.tags), name
        assert all((attrs.get("href") or "#").startswith("#") for _, attrs in found.tags), name
        assert [attrs for tag, attrs in found.tags if tag == "script" and not attrs.get("type")] == [{}], name
        assert not [key for _, attrs in found.tags for key in attrs if key.startswith("on")], name
    assert len(pages) > 60


def test_no_case_runs_anything(
    pages: dict[str, bytes], parse: type[Any], visit: Callable[..., Any], tmp_path: Path
) -> None:
    """In a browser: those made to attack, and one of each kind of page that the others give."""
    kinds: dict[frozenset[Any], str] = {}
    for name, html in pages.items():
        parts = {(tag, attrs.get("id"), attrs.get("class")) for tag, attrs in parse(html.decode()).tags}
        kinds.setdefault(frozenset(parts), name)
    seen = visit(page("start", "", []))
    path = tmp_path / "case.html"
    wanted = sorted({*kinds.values(), *(name for name in pages if name.startswith(HOSTILE))})
    for name in wanted:
        path.write_bytes(pages[name])
        seen.open(path)
        assert seen.misdeeds == [], name
    assert len(wanted) > 15


def test_text_of_a_trace_is_shown_and_not_run(tmp_path: Path, h200: Path, visit: Callable[..., Any]) -> None:
    raw = gzip.decompress((h200 / "seeds" / "naive.json.gz").read_bytes()).decode()
    path = tmp_path / "hostile.json"
    path.write_text(raw.replace("attn_fwd", MARKUP).replace("aten::masked_fill", f"aten::{MARKUP}"))
    seen = visit(look_page.render(tracehunch.look(path), source=MARKUP)).ready()
    assert seen.page.query_selector("main img") is None
    assert "<img src=x onerror=alert(1)>" in seen.page.inner_text("#scopes")
    seen.page.fill("#tl-search", "<img")
    seen.page.keyboard.press("Enter")
    assert seen.page.query_selector("#tl img") is None
    assert seen.page.inner_text("#tl-details h3").startswith(("<img", "aten::<img"))
    assert seen.misdeeds == []


def test_the_tests_above_can_fail(visit: Callable[..., Any]) -> None:
    """Markup that is let through is seen: the policy refuses to run it, and says so."""
    unsafe = Section("x", "x", f"<p>{MARKUP}</p>")
    seen = visit(page("unsafe", "", [unsafe]))
    assert seen.page.query_selector("main img") is not None
    assert any(one.startswith("request: ") for one in seen.misdeeds) or len(seen.misdeeds) > 1
    assert any("Content Security Policy" in one for one in seen.misdeeds)
    assert not [one for one in seen.misdeeds if one.startswith("dialog: ")]


def test_without_the_policy_it_would_run(visit: Callable[..., Any]) -> None:
    unsafe = page("unsafe", "", [Section("x", "x", f"<p>{MARKUP}</p>")])
    seen = visit(unsafe.replace(b"Content-Security-Policy", b"x-no-policy"))
    assert "dialog: 2" in seen.misdeeds


def test_data_cannot_end_its_block(visit: Callable[..., Any]) -> None:
    data = ["</script><script>alert(1)</script>", "<!--<script>", "\u2028", "]]>", "&lt;"]
    seen = visit(page("data", "", [Section("x", "x", "", data=data)]))
    assert json.loads(seen.eval("document.getElementById('data-x').textContent")) == data
    assert seen.misdeeds == []
