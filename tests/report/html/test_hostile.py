"""Files that attack a page: whatever is in them, it neither asks, requests nor fails."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import tracehunch
from tracehunch.errors import ReadError
from tracehunch.report.html import look_page
from tracehunch.report.html.page import page
from tracehunch.report.html.section import Section

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MARKUP = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


def test_no_case_runs_anything(cases: Path, visit: Callable[..., Any], tmp_path: Path) -> None:
    seen = visit(page("start", "", []))
    path = tmp_path / "case.html"
    opened = 0
    for case in sorted(cases.iterdir()):
        try:
            path.write_bytes(look_page.render(tracehunch.look(case), source=case.name))
        except ReadError:
            continue
        seen.open(path)
        assert seen.misdeeds == [], case.name
        opened += 1
    assert opened > 60


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
