from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import tracehunch
from tracehunch.report import json_report
from tracehunch.report.html import look_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tracehunch.verdict import Look

OWN_CODE_LIMIT = 200 * 1024


@cache
def look_at(path: Path) -> Look:
    return tracehunch.look(path)


@cache
def page_of(path: Path) -> bytes:
    return look_page.render(look_at(path), source=path.name)


def test_own_code_is_small() -> None:
    folder = files("tracehunch.report.html").joinpath("assets")
    assert sum(len(one.read_bytes()) for one in folder.iterdir()) < OWN_CODE_LIMIT


@pytest.mark.parametrize("name", ["seeds/naive", "models/llama_sdpa_train_stack", "faults/sync_item"])
def test_page_is_well_formed_and_names_nothing_external(h200: Path, parse: type[Any], name: str) -> None:
    found = parse(page_of(h200 / f"{name}.json.gz").decode())
    assert not found.wrong
    assert not found.open
    ids = [attrs["id"] for _, attrs in found.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for tag, attrs in found.tags if tag == "a"]
    assert all(link is not None and link.startswith("#") and link[1:] in ids for link in links)
    assert not [
        tag for tag, attrs in found.tags if attrs.get("src") or tag in {"link", "iframe", "object", "form"}
    ]
    assert not [
        attrs for _, attrs in found.tags if any(key.startswith("on") or key == "style" for key in attrs)
    ]
    policy = next(a["content"] for t, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_same_trace_gives_the_same_bytes(h200: Path) -> None:
    path = h200 / "seeds" / "naive.json.gz"
    assert look_page.render(tracehunch.look(path), source=path.name) == page_of(path)


@pytest.mark.parametrize("name", ["seeds/naive", "models/llama_sdpa_train_stack"])
def test_numbers_are_those_of_the_json(h200: Path, parse: type[Any], name: str) -> None:
    path = h200 / f"{name}.json.gz"
    found = parse(page_of(path).decode())
    report = json.loads(json_report.render(look_at(path)))
    scopes = {one["name"]: one for one in report["scopes"]}
    caption = "Scopes, medians per call"
    names = [shown for shown, _ in found.column(caption, "scope")]
    assert len(names) > 2
    for heading, key in (
        ("kernels", "kernels"),
        ("copies", "copies"),
        ("memsets", "memsets"),
        ("GPU time", "gpu_time_us"),
        ("CPU time", "cpu_time_us"),
        ("wall", "wall_time_us"),
    ):
        for scope, (_, value) in zip(names, found.column(caption, heading), strict=True):
            assert value == pytest.approx(scopes[scope]["facts"].get(key), abs=5e-4), (scope, key)
    step = scopes["ProfilerStep"]["kernels"]
    times = [value for _, value in found.column("Kernels in ProfilerStep", "time")]
    runs = [value for _, value in found.column("Kernels in ProfilerStep", "runs")]
    ops = [shown for shown, _ in found.column("Kernels in ProfilerStep", "launched by")]
    assert times == pytest.approx([one["gpu_time_us"] for one in step], abs=5e-4)
    assert runs == [one["per_call"] for one in step]
    assert ops == [one.get("op", "") for one in step]
    cards = [a["id"] for t, a in found.tags if t == "article" and (a.get("id") or "").startswith("f-")]
    assert len(cards) == len(report["findings"])


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_opens_without_a_word(h200: Path, visit: Callable[..., Any], width: int, scheme: str) -> None:
    html = page_of(h200 / "models" / "llama_sdpa_train_stack.json.gz")
    seen = visit(html, width=width, color_scheme=scheme).ready()
    assert seen.misdeeds == []
    assert seen.eval("document.documentElement.scrollWidth") == width


def test_tables_read_without_javascript(h200: Path, visit: Callable[..., Any]) -> None:
    seen = visit(page_of(h200 / "models" / "llama_sdpa_train_stack.json.gz"), java_script_enabled=False)
    text = seen.page.inner_text("main")
    assert "overhead-bound" in text
    assert "train_step" in text
    assert "LlamaModel_0" in seen.page.inner_text("#kernels table")
    assert seen.page.is_visible("#kernels table")
    assert not seen.page.is_visible("#tl")
    assert seen.page.is_visible("#timeline noscript p")


def test_headings_sort_and_kernels_group(h200: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_of(h200 / "models" / "llama_sdpa_train_stack.json.gz")).page
    page.click("#scopes th button:has-text('kernels')")
    assert page.get_attribute("#scopes th:has-text('kernels')", "aria-sort") == "descending"
    counts = page.eval_on_selector_all(
        "#scopes tbody tr", "rows => rows.map(r => Number(r.cells[3].dataset.v))"
    )
    assert counts == sorted(counts, reverse=True)
    total = 0.0
    for by in ("launched by", "module", "library", ""):
        page.select_option("#kernels select", by)
        rows = page.eval_on_selector_all("#kernels tbody tr", "rows => rows.map(r => +r.cells[1].dataset.v)")
        total = total or sum(rows)
        assert sum(rows) == pytest.approx(total)
        assert len(rows) > 3
    page.fill("#kernels input", "cudnn")
    shown = page.eval_on_selector_all("#kernels tbody tr", "all => all.map(r => r.textContent.toLowerCase())")
    assert shown
    assert all("cudnn" in row for row in shown)


def test_keyboard_reaches_all_and_shows_where_it_is(h200: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_of(h200 / "seeds" / "naive.json.gz")).ready().page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        now = page.evaluate(
            "(() => { const one = document.activeElement; return one === document.body ? null : ["
            "one.id || one.className || one.tagName, getComputedStyle(one).outlineStyle] })()"
        )
        if now is None:
            break
        assert now[1] != "none", now
        reached.add(now[0])
    assert {"tl-search", "tl-lanes", "lane", "frame"} <= reached


def test_headings_and_tables_are_named(h200: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_of(h200 / "models" / "llama_sdpa_train_stack.json.gz")).ready().page
    levels = page.eval_on_selector_all("h1,h2,h3", "all => all.map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.eval_on_selector_all("table", "all => all.every(one => one.caption.textContent.length > 5)")
    names = page.eval_on_selector_all(
        "button,input,select,[role]",
        "all => all.map(one => one.getAttribute('aria-label') || one.textContent)",
    )
    unnamed = page.eval_on_selector_all(
        "button,input,select,svg[role]",
        "all => all.filter(one => !(one.ariaLabel || one.textContent)).length",
    )
    assert names
    assert unnamed == 0


def test_print_is_light_and_leaves_out_what_is_to_be_pressed(h200: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_of(h200 / "seeds" / "naive.json.gz"), color_scheme="dark").ready().page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.is_visible("nav")
    assert not page.is_visible("#tl")
    assert not page.is_visible(".evidence")
    assert not page.is_visible("#kernels .bar")
    assert page.is_visible("#timeline .only-print")
    assert page.pdf()[:4] == b"%PDF"
