from __future__ import annotations

import gzip
import json
import re
import zlib
from base64 import b64decode
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tracehunch
from tracehunch.report.html import look_page
from tracehunch.report.html.modules import modules_of
from tracehunch.report.html.page import page
from tracehunch.report.html.timeline import timeline_section
from tracehunch.tree.modules import module_calls

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tracehunch.verdict import Look

TYPES = {"u8": "<u1", "u32": "<u4", "i32": "<i4", "f32": "<f4", "f64": "<f8"}


@cache
def look_at(path: Path) -> Look:
    return tracehunch.look(path)


@cache
def page_of(path: Path) -> bytes:
    return look_page.render(look_at(path), source=path.name)


@pytest.fixture(scope="module")
def naive(h200: Path) -> Path:
    return h200 / "seeds" / "naive.json.gz"


@pytest.fixture(scope="module")
def stack(h200: Path) -> Path:
    return h200 / "models" / "llama_sdpa_train_stack.json.gz"


def columns(data: dict[str, Any]) -> dict[str, Any]:
    return {
        key: np.frombuffer(zlib.decompress(b64decode(one["data"])), TYPES[one["kind"]])
        for key, one in data.items()
        if isinstance(one, dict) and "data" in one
    }


def test_times_are_those_of_the_file(naive: Path) -> None:
    """Counted another way: over the raw JSON."""
    section = timeline_section({"naive": look_at(naive)})
    assert section is not None
    [data] = section.data
    found = columns(data)
    raw = json.loads(gzip.decompress(naive.read_bytes()))["traceEvents"]
    assert data["unit_ns"] == 1
    assert len(found["event"]) == 166
    first = min(round(raw[at]["ts"] * 1000) for at in found["event"].tolist())
    for at, start, dur, name in zip(
        *(found[key].tolist() for key in ("event", "start", "dur", "name")), strict=True
    ):
        assert data["names"][name] == raw[at]["name"]
        assert dur == round(raw[at]["dur"] * 1000)
        assert start == round(raw[at]["ts"] * 1000) - first
    launched = found["launch"][found["launch"] >= 0]
    kernels = [one for one in raw if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    ids = {one["args"]["correlation"] for one in raw if one.get("cat") in ("cuda_runtime", "cuda_driver")}
    assert len(launched) == sum(one["args"]["correlation"] in ids for one in kernels)


def test_times_stay_exact_over_hours(naive: Path, tmp_path: Path, visit: Callable[..., Any]) -> None:
    raw = json.loads(gzip.decompress(naive.read_bytes()))
    events = raw["traceEvents"]
    step = next(one for one in events if one["name"].startswith("ProfilerStep") and one["ph"] == "X")
    step["dur"] = 7.2e9  # two hours: 32 bits of nanoseconds end after four seconds
    path = tmp_path / "long.json"
    path.write_text(json.dumps(raw))
    look = tracehunch.look(path)
    section = timeline_section({"long": look})
    assert section is not None
    [data] = section.data
    found = columns(data)
    assert data["unit_ns"] == 1
    assert data["span"] > 7e12
    for at, dur in zip(found["event"].tolist(), found["dur"].tolist(), strict=True):
        assert dur == round(events[at]["dur"] * 1000)
    page = visit(look_page.render(look)).ready().page
    page.fill("#tl-search", "softmax_warp_forward")
    page.keyboard.press("Enter")
    said = page.inner_text("#tl-details")
    event = re.search(r"traceEvents\[(\d+)\]", said)
    assert event is not None
    assert f"{events[int(event[1])]['dur']:.4g} us" in said


def test_events_of_a_line_do_not_overlap(stack: Path) -> None:
    section = timeline_section({"stack": look_at(stack)})
    assert section is not None
    [data] = section.data
    found = columns(data)
    assert sum(b - a for lane in data["lanes"] for a, b in lane["lines"]) == len(found["start"])
    for lane in data["lanes"]:
        for a, b in lane["lines"]:
            start, end = found["start"][a:b].astype(int), found["start"][a:b].astype(int) + found["dur"][a:b]
            assert (np.diff(start) >= 0).all()
            assert (start[1:] >= end[:-1] - 2).all()
    folded = [lane for lane in data["lanes"] if lane["folded"]]
    assert [lane["label"] for lane in folded] == ["thread 626: Python frames"]
    inside = {data["kinds"][kind] for a, b in folded[0]["lines"] for kind in found["kind"][a:b].tolist()}
    assert inside == {"Python"}


def test_module_of_an_event_is_the_innermost_around_it(stack: Path) -> None:
    """Counted another way: each launch against every call of a module."""
    tree = look_at(stack).facts.tree
    trace = tree.trace
    launches = tree.launches[::7]
    numbers, names = modules_of(tree, launches)
    calls, paths = module_calls(trace)
    some = 0
    for row, number in zip(launches.tolist(), numbers.tolist(), strict=True):
        around = [
            (int(trace.dur_ns[call]), path)
            for call, path in zip(calls.tolist(), paths, strict=True)
            if trace.thread[call] == trace.thread[row]
            and trace.start_ns[call] <= trace.start_ns[row] <= trace.start_ns[call] + trace.dur_ns[call]
        ]
        if around:
            assert names[number] == min(around)[1]
            some += 1
        else:
            assert names[number] == "" or names[number].startswith("backward of ")
    assert some > 40
    assert sum(names[at].startswith("backward of ") for at in numbers.tolist()) > 40


def test_what_is_left_out_is_said(stack: Path) -> None:
    section = timeline_section({"stack": look_at(stack)}, limit=2_000)
    assert section is not None
    assert (
        "Left out to keep it fluid: 3,132 Python frames, 4,396 of the shortest host events." in section.html
    )
    assert section.aside == "2,000 events"
    whole = timeline_section({"stack": look_at(stack)})
    assert whole is not None
    assert "Left out" not in whole.html


def test_nesting_without_end_is_cut(cases: Path) -> None:
    section = timeline_section({"deep": tracehunch.look(cases / "deep_calls_same_end.json.gz")})
    assert section is not None
    assert section.aside == "251 events"  # 250 calls, and the step beside them
    assert "99,750 events nested deeper than 250 levels" in section.html


def test_keys_zoom_move_and_select(naive: Path, visit: Callable[..., Any]) -> None:
    seen = visit(page_of(naive)).ready()
    page = seen.page
    page.focus("#tl-lanes")
    whole = seen.view()
    page.keyboard.press("w")
    near = seen.view()
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 1.3, rel=1e-3)
    page.keyboard.press("d")
    right = seen.view()
    assert right[0] > near[0]
    page.keyboard.press("s")
    page.keyboard.press("0")
    assert seen.view() == whole
    page.keyboard.press("ArrowDown")
    first = page.inner_text("#tl-status")
    assert re.search(r"^ProfilerStep#2, annotation, .* us, 1 of 3 on this line of thread 415$", first)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#tl-status").startswith("attn_fwd, annotation")
    page.keyboard.press("f")
    fitted = seen.view()
    assert fitted[1] - fitted[0] < (whole[1] - whole[0]) / 4
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "tl-details"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "tl-lanes"
    page.keyboard.press("Escape")
    assert page.inner_text("#tl-details") == ""
    assert seen.misdeeds == []


def test_search_finds_names_and_shows_a_kernel_decoded(naive: Path, visit: Callable[..., Any]) -> None:
    seen = visit(page_of(naive)).ready()
    page = seen.page
    page.fill("#tl-search", "softmax_warp_forward")
    page.keyboard.press("Enter")
    assert page.inner_text("#tl-found") == "3 matches of names and modules"
    assert "match 1 of 3" in page.inner_text("#tl-status")
    said = page.inner_text("#tl-details")
    for word in ("softmax_warp_forward", "launched by", "cudaLaunchKernel", "algorithm", "softmax"):
        assert word in said
    assert re.search(r"grid\s+\d+ x \d+ x \d+", said)
    assert re.search(r"occupancy\s+62\.5%", said)
    page.focus("#tl-lanes")
    page.keyboard.press("n")
    assert "match 2 of 3" in page.inner_text("#tl-status")
    page.keyboard.press("g")
    assert page.inner_text("#tl-status").startswith("cudaLaunchKernel, runtime call")
    page.keyboard.press("g")
    assert "softmax_warp_forward" in page.inner_text("#tl-status")
    page.click("#tl-details .go >> nth=0")
    assert page.evaluate("document.activeElement.id") == "tl-lanes"


def test_search_finds_modules_and_lanes_unfold(stack: Path, visit: Callable[..., Any]) -> None:
    seen = visit(page_of(stack)).ready()
    page = seen.page
    folded = page.locator(".lane[aria-expanded=false]")
    assert folded.count() == 1
    assert folded.inner_text() == "thread 626: Python frames 3,132 events"
    page.fill("#tl-search", "LlamaAttention_3")
    page.keyboard.press("Enter")
    assert "LlamaAttention_3" in page.inner_text("#tl-details")
    assert int(page.inner_text("#tl-found").split()[0].replace(",", "")) > 100
    page.keyboard.press("Escape")
    before = page.locator("#tl-host > div").bounding_box()["height"]
    if page.locator(".lane[aria-expanded=false]").count():
        page.locator(".lane[aria-expanded=false]").click()
    page.locator(".lane >> nth=0").click()
    assert page.locator(".lane >> nth=0").get_attribute("aria-expanded") == "false"
    assert page.locator("#tl-host > div").bounding_box()["height"] != before
    assert seen.misdeeds == []


def test_pointer_zooms_where_it_is_moves_and_tells(naive: Path, visit: Callable[..., Any]) -> None:
    seen = visit(page_of(naive)).ready()
    page = seen.page
    page.locator("#tl-lanes").scroll_into_view_if_needed()
    box = page.locator("#tl-lanes").bounding_box()
    wide = page.evaluate("document.getElementById('tl-host').clientWidth")
    x, y = box["x"] + 1 + wide * 0.1, box["y"] + 22 + 20 + 17 + 8
    whole = seen.view()
    page.mouse.move(x, y)
    assert page.inner_text("#tl-tip").startswith("attn_fwd, annotation, ")
    under = whole[0] + 0.1 * (whole[1] - whole[0])
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    near = seen.view()
    assert near[0] + 0.1 * (near[1] - near[0]) == pytest.approx(under, rel=0.01)
    page.focus("#tl-lanes")
    page.keyboard.press("w")
    nearer = seen.view()
    assert nearer[0] + 0.1 * (nearer[1] - nearer[0]) == pytest.approx(under, rel=0.01)
    page.mouse.down()
    page.mouse.move(x - 100, y, steps=3)
    page.mouse.up()
    moved = seen.view()
    span = nearer[1] - nearer[0]
    assert moved[0] - nearer[0] == pytest.approx(span * 100 / wide, rel=0.05)
    page.keyboard.press("0")
    page.mouse.click(x, y)
    assert page.inner_text("#tl-details h3") == "attn_fwd"


def test_two_fingers_zoom(naive: Path, visit: Callable[..., Any]) -> None:
    seen = visit(page_of(naive), width=390, has_touch=True).ready()
    whole = seen.view()
    seen.eval(
        """() => {
          const lanes = document.getElementById("tl-lanes"), edge = lanes.getBoundingClientRect();
          lanes.setPointerCapture = () => {};
          const send = (type, id, x) => lanes.dispatchEvent(new PointerEvent(type, {
            pointerId: id, pointerType: "touch", bubbles: true,
            clientX: edge.left + x, clientY: edge.top + 60 }));
          send("pointerdown", 1, 150);
          send("pointerdown", 2, 200);
          send("pointermove", 1, 125);
          send("pointermove", 2, 225);
          send("pointerup", 1, 125);
          send("pointerup", 2, 225);
        }"""
    )
    near = seen.view()
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 2, rel=0.02)
    assert seen.page.inner_text("#tl-details") == ""


def test_finding_shows_the_evidence_of_one_call(naive: Path, visit: Callable[..., Any]) -> None:
    seen = visit(page_of(naive), fragment="#f-hidden-copy").ready()
    page = seen.page
    whole = seen.view()
    assert page.inner_text("#f-hidden-copy .evidence") == "Show in the timeline"
    page.click("#f-hidden-copy .evidence")
    assert "Memcpy DtoD" in page.inner_text("#tl-details")
    assert "6 events of hidden-copy marked" in page.inner_text("#tl-found")
    assert page.evaluate("document.activeElement.id") == "tl-lanes"
    near = seen.view()
    assert near[1] - near[0] < (whole[1] - whole[0]) / 8
    page.keyboard.press("n")
    assert "evidence of hidden-copy" in page.inner_text("#tl-status")


def test_evidence_outside_of_what_is_shown_is_said(naive: Path, visit: Callable[..., Any]) -> None:
    look = look_at(naive)
    raw = json.loads(gzip.decompress(naive.read_bytes()))["traceEvents"]
    outside = next(at for at, one in enumerate(raw) if one.get("ph") == "M")
    first, second = look.checked.findings
    found = (replace(first, evidence=(outside,)), replace(second, evidence=(*second.evidence, outside)))
    changed = replace(look, checked=replace(look.checked, findings=found))
    page = visit(look_page.render(changed)).ready().page
    gone = page.locator(f"#f-{first.id} .evidence")
    assert gone.inner_text() == "Its evidence lies outside of what the timeline shows"
    assert gone.is_disabled()
    part = page.locator(f"#f-{second.id} .evidence")
    assert part.inner_text() == "Show in the timeline (6 of 7 events)"
    part.click()
    assert "1 more lie outside" in page.inner_text("#tl-found")


def test_browser_without_decompression_is_told(
    naive: Path, visit: Callable[..., Any], tmp_path: Path
) -> None:
    section = timeline_section({"naive": look_at(naive)})
    assert section is not None
    seen = visit(page("empty", "", []))
    seen.page.add_init_script("delete window.DecompressionStream")
    path = tmp_path / "old.html"
    path.write_bytes(page("old", "", [section]))
    seen.misdeeds.clear()
    seen.address = path.as_uri()
    seen.page.goto(path.as_uri())
    assert seen.page.is_visible("#tl-old")
    assert seen.misdeeds == []
