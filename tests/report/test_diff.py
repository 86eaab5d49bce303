"""Comparisons as text, Markdown and JSON."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tracehunch.compare import diff
from tracehunch.judge import examine
from tracehunch.report import diff_json, diff_markdown, diff_terminal, json_report
from tracehunch.report.diff_words import relative, signed_time, times_text
from tracehunch.report.layout import View
from tracehunch.trace import read, read_bytes

DATA = Path(__file__).parents[1] / "data"
PAIRS = [
    ("h200/seeds/naive", "h200/seeds/naive_inplace"),
    ("h200/models/llama_sdpa_prefill", "h200/models/llama_sdpa_padded"),
    ("h200/ops/geglu_eager", "h200/ops/geglu_compiled"),
    ("h200/seeds/sdpa_math", "h200/seeds/sdpa_flash"),
    ("h200/models/llama_sdpa_generate", "h200/situations/decode_cuda_graph"),
    ("cpu/naive", "cpu/naive_inplace"),
    ("cpu/naive", "h200/seeds/naive"),
]
EVIL = [
    "\x1b[2J\x1b]0;owned\x07", "user\u202etxt.exe", "<script>alert(1)</script>", "a | b | c",
    "`x` **b** [l](http://e)", "@octocat #1 https://evil.example", "line\r\nbreak\x00nul", "half \ud83d pair",
    "k" * 20_000, "x -> y => z",
]  # fmt: skip


@cache
def compared(before: str, after: str) -> Any:
    return diff(*(examine(read(DATA / f"{name}.json.gz")) for name in (before, after)))


def text_of(before: str, after: str, **options: Any) -> str:
    return diff_terminal.render(compared(before, after), **options)


def hostile(names: list[str], slower: float) -> Any:
    events: list[dict[str, Any]] = []
    for at, name in enumerate(names):
        start = 1000 * at
        host = {"ph": "X", "pid": 1, "tid": 1}
        events += [
            {**host, "cat": "user_annotation", "name": name, "ts": start, "dur": 500},
            {**host, "cat": "cpu_op", "name": name, "ts": start + 1, "dur": 400},
            {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 2, "dur": 3},
            {
                "ph": "X",
                "pid": 0,
                "tid": 7,
                "cat": "kernel",
                "name": name,
                "ts": start + 60,
                "dur": 90 * slower,
            },
        ]
        for event in events[-2:]:
            event["args"] = {"correlation": at + 1, "device": 0, "stream": 7}
    text = json.dumps({"traceEvents": events})
    return examine(read_bytes(text.encode("utf-8", "surrogatepass"), "t.json"))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[1].rpartition("/")[2])
@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(pair: tuple[str, str], width: int) -> None:
    lines = text_of(*pair, view=View(width=width), all_scopes=True, top=50).splitlines()
    assert [line for line in lines if len(line) > width and not line.startswith(("  ! ", "Next: "))] == []


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[1].rpartition("/")[2])
def test_every_format_of_every_pair(pair: tuple[str, str]) -> None:
    result = compared(*pair)
    assert text_of(*pair).splitlines()[-1].startswith("Next: tracehunch ")
    assert (
        MarkdownIt("commonmark")
        .enable("table")
        .render(diff_markdown.render(result))
        .startswith("<h2>tracehunch diff")
    )
    report = json.loads(diff_json.render(result))
    assert report["schema"] == "tracehunch/1"
    assert [scope["delta_us"] for scope in report["scopes"]] == [scope.delta_us for scope in result.scopes]
    assert diff_json.render(result) == diff_json.render(result)


def test_the_json_embeds_the_objects_of_look() -> None:
    result = compared(*PAIRS[0])
    report = json.loads(diff_json.render(result))
    for side, look in (("before", result.before), ("after", result.after)):
        alone = json.loads(json_report.render(look))
        assert report[side]["trace"] == alone["trace"]
        (scope,) = [scope for scope in alone["scopes"] if scope["name"] == "attn_fwd"]
        assert report["scopes"][0][side] == scope
    alone = json.loads(json_report.render(result.before))
    (gone,) = report["findings"]["gone"]
    assert gone["id"] == "hidden-copy"
    assert gone in alone["findings"]
    (change,) = report["scopes"][0]["changes"]
    assert change["kind"] == "went"
    assert change["before"][0]["path"] == ["aten::masked_fill", "aten::clone", "aten::copy_"]
    assert change["after"] == []
    assert report["scopes"][0]["facts"]["gpu_time_us"] == {
        "before": 1063.54,
        "after": 938.132,
        "outcome": "less",
    }
    assert report["scopes"][0]["facts"]["wall_time_us"]["outcome"] == "noise"


def test_the_in_place_variant_in_words() -> None:
    text = text_of(*PAIRS[0])
    assert "attn_fwd is faster, per call: GPU time 1,063.5 -> 938.1 us (-12%)" in text
    assert "  -126.9 us  went  aten::masked_fill > aten::copy_" in text
    assert "aten::masked_fill is not called any more; aten::masked_fill_ is, in its" in text
    assert re.search(r"unknown +driver, cuDNN and torch: neither trace says them", text)
    assert "1 gone" in text


def test_the_padded_model_in_words() -> None:
    text = text_of(*PAIRS[1])
    assert "6 a call, 199.5 -> 458.6 us (33.3 -> 76.4 us each)" in text
    assert "12 kernels, 169.9 us a call" in text
    flat = " ".join(text.split())
    assert "is_causal is gone (True -> False), enable_gqa is gone (True -> False), a mask is there" in flat
    assert "as repeat_kv does" in flat
    assert "--top" in text


def test_nothing_differs() -> None:
    text = text_of("h200/seeds/naive", "h200/seeds/naive")
    assert "Nothing differs beyond noise: the same kernels, as often, in the same time." in text
    assert "Changes" not in text
    assert text.splitlines()[-1].startswith("Next: tracehunch guess --from")


def test_a_cpu_against_a_gpu_says_that_they_do_not_compare() -> None:
    flat = " ".join(text_of(*PAIRS[-1]).split())
    assert "kernels, copies and times do not compare" in flat
    assert "faster" not in flat
    assert "slower" not in flat


def test_top_lists_more_and_the_rest_is_counted() -> None:
    shown = [len(re.findall(r"^  +[+-]\d", text_of(*PAIRS[1], top=top), re.MULTILINE)) for top in (1, 5, 100)]
    assert shown[:2] == [1, 5]
    assert shown[2] > 8
    assert "more changes" not in text_of(*PAIRS[1], top=100)


def test_scopes_that_repeat_an_annotation_are_folded() -> None:
    assert "ProfilerStep" not in text_of(*PAIRS[0])
    assert "ProfilerStep" in text_of(*PAIRS[0], all_scopes=True)


@pytest.mark.parametrize("name", EVIL, ids=range(len(EVIL)))
def test_hostile_names_act_in_no_format(name: str) -> None:
    result = diff(hostile([name, "plain"], 1), hostile([name, "plain", "other"], 2))
    assert any(scope.changes for scope in result.scopes)
    for text in (diff_terminal.render(result, top=50), diff_markdown.render(result, top=50)):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", text)
        assert len(text) < 40_000
    html = (
        MarkdownIt("commonmark", {"html": False}).enable("table").render(diff_markdown.render(result, top=50))
    )
    assert "<script" not in html
    assert "<a " not in html
    assert json.loads(diff_json.render(result))["scopes"]


def test_ascii_where_the_output_takes_no_more() -> None:
    assert text_of(*PAIRS[1], view=View(unicode=False)).isascii()


def test_numbers_in_words() -> None:
    assert times_text(1063.54, 938.13) == "1,063.5 -> 938.1 us"
    assert times_text(0.5, 20_000) == "0.500 us -> 20.00 ms"
    assert (signed_time(-126.9), signed_time(0.0)) == ("-126.9 us", "+0 us")
    assert [relative(100, x) for x in (88, 130, 250)] == ["-12%", "+30%", "2.50x"]
    assert relative(0, 5) == "new"
