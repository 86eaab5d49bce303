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
from tracehunch.report import (
    diff_findings,
    diff_headline,
    diff_json,
    diff_markdown,
    diff_terminal,
    json_report,
)
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
        .startswith("<!-- tracehunch:diff -->\n<h2>tracehunch diff")
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


def test_the_json_holds_times_that_no_scope_has() -> None:
    names = "h200_waits/pinned_compute_stream", "h200_waits/prefetch_side_stream"
    scope = json.loads(diff_json.render(compared(*names)))["scopes"][0]
    assert scope["ranked_by"] == "period_us"
    assert scope["delta_us"] == pytest.approx(scope["period_us"]["after"] - scope["period_us"]["before"])
    assert scope["period_us"]["outcome"] == "less"
    assert scope["outside_us"]["outcome"] == "noise"


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
    assert "is_causal is gone (True -> False); enable_gqa is gone (True -> False); a mask is there" in flat
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


def headlines(before: str, after: str) -> list[tuple[str, tuple[str, ...]]]:
    return diff_headline.headline(compared(before, after))


def test_the_time_that_people_wait_for_comes_first() -> None:
    ((first, _),) = headlines("h200_plans/plan_cost_varying", "h200_plans/plan_cost_varying_flash")
    assert first.startswith("attention is faster: one call every 75.76 -> 0.42 ms (-99.4%); wall time 76.37")
    assert first.endswith("; but GPU time 47.8 -> 79.5 us (+66%)")
    ((first, _),) = headlines("h200/seeds/sdpa_math", "h200/seeds/sdpa_flash")
    assert "per call: GPU time 2,617.0 -> 94.7 us (-96%); wall time" in first


def test_the_host_says_what_it_waited_for() -> None:
    names = "h200/faults/clean", "h200/faults/cpu_stall"
    ((first, why),) = headlines(*names)
    assert "wall time 1,297.7 -> 4,089.5 us (3.15x); GPU time the same within noise" in first
    assert why[0].startswith("most of it: new finding host-stall, the host was outside PyTorch for 3.186 ms")
    assert "on the host in step: outside PyTorch +3.088 ms" in " ".join(text_of(*names).split())


def test_waiting_for_other_ranks_is_told_from_work() -> None:
    for first, why in headlines("h200/ranks/ddp/rank0", "h200/ranks/ddp/rank1"):
        assert "GPU time" in first
        assert why == ("+18.48 ms of it in collectives, whose time holds the wait for the slowest rank",)


def test_calls_that_come_round_sooner_are_faster() -> None:
    ((first, why),) = headlines("h200_waits/pinned_compute_stream", "h200_waits/prefetch_side_stream")
    assert first.startswith("step is faster: one call every 6,279.3 -> 5,061.4 us (-19%); GPU time the same")
    assert why[0].startswith("most of it: gone finding copy-not-overlapped")


def test_a_new_finding_is_told_though_no_scope_moved() -> None:
    ((first, _),) = headlines("h200_waits/jitter_from_idle", "h200_waits/jitter_contended")
    assert first.startswith("Nothing differs beyond noise")
    assert first.endswith("But there is a new finding: host-stall in step, 6.544 ms a call.")
    ((first, _),) = headlines("cpu/mha", "cpu/mha")
    assert first == "Nothing differs beyond noise: the same ops, as often, in the same time."


def test_findings_stand_worst_first_then_by_time() -> None:
    found = [(what, one) for what, one, _ in diff_findings.finding_lines(compared(*PAIRS[1]))]
    found += [
        (what, one)
        for what, one, _ in diff_findings.finding_lines(
            compared("h200/models/llama_eager_prefill", "h200/models/llama_sdpa_prefill")
        )
    ]
    for kind in ("new", "grown", "gone"):
        severities = [one.severity for what, one in found[-7:] if what == kind]
        assert severities == sorted(severities, key=("error", "warning", "note").index)


def test_what_a_finding_says_is_told_once() -> None:
    text = text_of("h200/seeds/naive", "h200/seeds/sdpa_flash", view=View(width=100))
    assert text.count("It is the chain matmul, mul, masked_fill, softmax, matmul") == 1
    assert text.count("gone finding unfused-attention, as above") == 2


def test_a_replay_is_named_where_no_op_is_known() -> None:
    text = text_of("h200/ops/cudagraph_flash", "h200/situations/decode_cuda_graph")
    assert "a CUDA graph's replay" in text


def test_a_scope_that_cannot_be_typed_is_not_put_into_the_next_command() -> None:
    result = diff(hostile(["a\nb", "plain"], 1), hostile(["a\nb", "plain"], 2))
    last = diff_terminal.render(result).splitlines()[-1]
    assert last.startswith("Next: tracehunch look t.json")
    assert "\\x0a" not in last
    long = "n" * 20_000
    result = diff(hostile([long], 1), hostile([long], 2))
    lines = diff_terminal.render(result).splitlines()
    assert max(len(line) for line in lines if not line.startswith("  ! ")) <= 80


def test_counts_give_way_to_names_that_would_be_cut() -> None:
    name = "forward of the second encoder"
    result = diff(hostile([name, "b"], 1), hostile([name, "b"], 2))
    lines = diff_terminal.render(result, view=View(width=80)).splitlines()
    assert any(line.startswith(f"  {name}") for line in lines)
