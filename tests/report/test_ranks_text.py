"""Many ranks in words: terminal, Markdown, workflow commands."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt

from tracehunch.report import ranks_github, ranks_json, ranks_markdown, ranks_summary, ranks_text
from tracehunch.report.layout import View
from tracehunch.report.ranks_bars import bar, parts_ns, shared_out
from tracehunch.report.ranks_clocks import clock_texts
from tracehunch.report.ranks_rows import shown_ranks
from tracehunch.report.ranks_spread import shape, spreads
from tracehunch.report.ranks_words import bytes_text
from tracehunch.report.ranks_words import ranks_text as named
from tracehunch.trace.model import Notice
from tracehunch.units import percent, time_us
from tracehunch.verdict import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

EVIL = (
    "\x1b[2J\x1b]0;owned\x07 user\u202etxt <script>alert(1)</script> | a | @me #1 https://e.example `x` "
    "half \ud83d"
)


def text_of(ranks: Any, **options: Any) -> str:
    return ranks_text.render(ranks, sources=["run"], **options)


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("n_ranks", [1, 2, 16, 256])
@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any], n_ranks: int, width: int
) -> None:
    ranks = made_ranks(n_ranks, late=0)
    long_notices = tuple(replaced(one, message="so it goes " * 30) for one in ranks.notices)
    ranks = replaced(ranks, notices=(*long_notices, Notice("outside-window", "on and on " * 30, lossy=True)))
    for everything, watched in ((False, True), (True, True), (False, False)):
        text = text_of(ranks, view=View(width=width, interactive=watched), all_ranks=everything)
        long = [line for line in text.splitlines() if len(line) > width and not line.startswith("Next: ")]
        assert long == []


def test_of_few_ranks_each_has_a_line_and_of_many_those_that_stand_out(
    made_ranks: Callable[..., Any],
) -> None:
    few, many = made_ranks(16), made_ranks(256, late=77)
    assert len(shown_ranks(few)[0]) == 16
    rows, whys = shown_ranks(many)
    shown = {row.rank: why for row, why in zip(rows, whys, strict=True)}
    assert len(shown) < 12
    assert "delays the others most" in shown[77]
    assert "unlike the others" in shown[255]
    assert any("the usual rank" in why for why in whys)
    assert len(shown_ranks(many, all_ranks=True)[0]) == 256
    text = text_of(many)
    assert "All 256 ranks" in text
    assert len(text.splitlines()) < 100
    assert len(text_of(many, all_ranks=True).splitlines()) > 512


def test_the_extremes_are_those_of_the_json(made_ranks: Callable[..., Any]) -> None:
    ranks = made_ranks(64, late=5)
    rows = json.loads(ranks_json.render(ranks))["ranks"]
    found = {one.name: one for one in spreads(ranks.rows)}
    most = max(rows, key=lambda row: row["made_wait_us"])
    assert (found["delays"].most_rank, found["delays"].most) == (
        5,
        time_us(most["made_wait_us"] / most["steps"]),
    )
    least = min(rows, key=lambda row: row["compute_us"] / row["window_us"])
    assert found["compute"].least_rank == least["rank"]
    assert found["compute"].least == percent(100 * least["compute_us"] / least["window_us"])
    for one in found.values():
        assert sum(one.counts) == 64
        assert one.counts[0]
        assert one.counts[-1]


def test_every_number_of_a_rank_is_that_of_the_json(made_ranks: Callable[..., Any]) -> None:
    ranks = made_ranks(8)
    lines = text_of(ranks, view=View(width=120)).splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("Ranks"))
    heads = re.split(r"\s{2,}", lines[at + 1].strip())
    for row, line in zip(json.loads(ranks_json.render(ranks))["ranks"], lines[at + 2 :], strict=False):
        cells = dict(zip(heads, re.split(r"\s{2,}", line.strip()), strict=True))
        window = row["window_us"]
        assert cells["rank"] == str(row["rank"])
        assert cells["host step"] == time_us(row["step_us"])
        for head, key in (
            ("compute", "compute_us"),
            ("exposed", "exposed_communication_us"),
            ("copies", "copy_us"),
        ):
            assert cells[head] == percent(100 * row[key] / window)
        assert cells["overlap"] == percent(100 * row["overlapped_us"] / row["communication_us"])
        assert cells["idle"] == percent(100 * sum(row["idle_us"].values()) / window)
        assert cells["waits"] == time_us(row["waited_us"] / row["steps"])
        assert cells["delays"] == time_us(row["made_wait_us"] / row["steps"])


def test_a_bar_is_shared_out_as_the_window_was(made_ranks: Callable[..., Any]) -> None:
    row = made_ranks(2).rows[0]
    drawn = bar(row, 40, unicode=True)
    assert len(drawn) == 40
    for mark, part in zip("█▒▪·", parts_ns(row), strict=True):
        assert abs(drawn.count(mark) - 40 * part / row.window_ns) < 1
    assert bar(row, 40, unicode=False) == drawn.translate(str.maketrans("█▒▪·", "#=o."))
    assert shared_out([1, 1, 1], 10) == [4, 3, 3]
    assert shared_out([0, 0], 10) == [0, 0]


def test_a_bin_with_any_rank_in_it_is_not_blank() -> None:
    assert shape([1000, 0, 1], unicode=False) == "@ ."
    assert shape([1000, 0, 1], unicode=True) == "█ ▁"


def test_findings_come_first_worst_first_then_by_time(made_ranks: Callable[..., Any]) -> None:
    text = text_of(made_ranks(4))
    order = [
        text.index(word)
        for word in ("straggler", "exposed-communication", "\nRanks", "\nCollectives", "\nClocks")
    ]
    assert order == sorted(order)
    assert "warning  straggler in ProfilerStep of rank 1" in text


def test_who_waits_for_whom_in_words(
    made_ranks: Callable[..., Any], real_ranks: Callable[[str], Any]
) -> None:
    text = flat(text_of(made_ranks(4)))
    assert "rank 1 came last to 45 of 60 collectives; 3 ranks waited 36.00 ms for it, all together" in text
    text = flat(text_of(real_ranks("ddp")))
    assert re.search(r"rank 0 came last to 18 of 18 collectives; rank 1 waited 55\.\d+ ms for it", text)


def test_ranks_of_one_host_share_a_line_of_clocks(made_ranks: Callable[..., Any]) -> None:
    assert [(one.ranks, one.offset) for one in clock_texts(made_ranks(16))] == [
        ("ranks 1-7", "the same"),
        ("ranks 8-15", "1.200-1.201 ms ahead"),
    ]


def test_what_cannot_be_told_is_said(
    made_ranks: Callable[..., Any], untold_ranks: Callable[[Any], Any]
) -> None:
    text = flat(text_of(untold_ranks(made_ranks(4))))
    assert "4 ranks; how many the job has, no file says" in text
    assert "ranks 0-3 by the order of the files" in text
    assert "no rank recorded GPU activity: where the time went cannot be told; record with" in text
    assert "cannot tell clock of ranks 1-3" in text
    assert "no collective with GPU kernels was recorded, so nobody can say who waits for whom" in text
    assert "Where the time went" not in text
    assert " 0 us" not in text
    assert "0%" not in text


def test_missing_ranks_and_files_that_were_not_read(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any]
) -> None:
    ranks = made_ranks(4)
    ranks = replaced(ranks, rows=ranks.rows[:2], missing=(2, 3))
    text = flat(text_of(ranks))
    assert "2 of 4; ranks 2, 3 missing" in text
    assert "x.json (1.2 KiB): no trace: it holds no traceEvents" in text
    assert "2 jobs here; reported is the one with the most ranks, of those the newest: run (rank0" in text
    assert "left out ranks 0-1 of 2, recorded an hour before" in text
    empty = replaced(ranks, rows=(), matched=(), bandwidth=(), clocks=(), odd=(), findings=())
    assert text_of(empty).splitlines()[-1] == "Next: tracehunch look run"


def test_the_head_has_the_step_of_the_job_and_waits_are_a_step(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any]
) -> None:
    ranks = made_ranks(4)
    text = flat(text_of(ranks))
    assert "step 33.33 ms of the job on average: recorded window over steps" in text
    assert "waits and delays a step" in text
    stepless = [replaced(row, steps=0, step_us=None, job_step_us=None) for row in ranks.rows]
    text = flat(text_of(replaced(ranks, rows=(stepless[0], *ranks.rows[1:]))))
    assert "waits and delays are sums over it" in text
    assert f" {time_us(ranks.rows[1].made_wait_ns / 1e3)} " in text
    text = flat(text_of(replaced(ranks, rows=tuple(stepless))))
    assert "of the job on average" not in text
    assert "host step:" not in text


def test_damage_stands_above_the_findings_and_what_is_ordinary_below(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any]
) -> None:
    ranks = made_ranks(4)
    passed = Notice("passed-over", "1 of 3 files passed over as no traces: 1 not named *.json")
    ordinary = Notice("outside-window", "18 GPU activities", lossy=True)
    ranks = replaced(ranks, notices=(*ranks.notices, passed, ordinary))
    above, _, below = text_of(ranks).partition("\nFindings")
    for line in ("  ! truncated: cut short", "  ! missing-ranks: no file of rank 9", "  ! not read: x.json"):
        assert line in above
        assert line not in below
    assert "  ! outside-window: 18 GPU activities" in below
    assert "\n1 of 3 files passed over" in below
    assert "! passed-over" not in below
    many = replaced(ranks, unread=ranks.unread * 5)
    above, _, below = text_of(many).partition("\nFindings")
    assert above.count("! not read") == 3
    assert "5 files, see the end" in above
    assert below.count("x.json (1.2 KiB): no trace") == 5
    markdown = ranks_markdown.render(ranks)
    assert markdown.index("**truncated**") < markdown.index("### Findings") < markdown.index("outside-window")


def test_a_file_that_breaks_off_is_not_blamed_on_the_profiler(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any], untold_ranks: Callable[[Any], Any]
) -> None:
    ranks = made_ranks(3)
    cut = replaced(untold_ranks(ranks).rows[2], is_cut=True)
    text = flat(text_of(replaced(ranks, rows=(*ranks.rows[:2], cut))))
    assert "rank 2: the file breaks off before any GPU activity" in text
    assert "ProfilerActivity" not in text


def test_which_of_several_jobs_was_taken(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any]
) -> None:
    ranks = made_ranks(2)
    two = ranks_text.render(ranks, sources=["run", "other"]).splitlines()
    assert two[1].startswith("  job       2 places named, 2 jobs there; reported is the one")
    assert "jobs" not in ranks_text.render(replaced(ranks, other_jobs=()), sources=["run"])
    apart = tuple(replaced(row, sources=(f"n{row.rank}/t.json",)) for row in ranks.rows)
    assert "the newest: n0/t.json ... n1/t.json" in flat(text_of(replaced(ranks, rows=apart)))


def test_of_two_ranks_neither_is_the_odd_one(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any]
) -> None:
    ranks = made_ranks(2)
    for odd in (ranks.odd[0], replaced(ranks.odd[0], rank=0, seen=4, median=40)):
        text = flat(text_of(replaced(ranks, odd=(odd,))))
        assert "Where the two ranks differ facts per call of the scope fact rank 0 rank 1 scope" in text
        assert "copies 4 40 train_step" in text
        assert "median rank" not in text
    assert "| <code>copies</code> | 4 | 40 | <code>train_step</code> |" in ranks_markdown.render(ranks)
    assert "Unlike the other ranks" in text_of(made_ranks(3))


def test_groups_are_told_where_there_are_several(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any]
) -> None:
    ranks = made_ranks(4)
    assert " group " not in flat(text_of(ranks).partition("Collectives")[2])
    kinds = {64 << 10: "tp", 25 << 20: "dp"}
    ranks = replaced(
        ranks,
        matched=tuple(replaced(one, group_kind=kinds[one.bytes or 0]) for one in ranks.matched),
        bandwidth=tuple(replaced(one, group=kinds[one.least_bytes]) for one in ranks.bandwidth),
    )
    text = flat(text_of(ranks))
    assert re.search(r"allreduce dp 4 25 MiB 30 327\.7 ", text)
    assert re.search(r"allreduce tp 4 64 KiB 30 2\.5 ", text)
    assert "| <code>allreduce</code> | tp | 4 | 64 KiB |" in ranks_markdown.render(ranks)
    assert [row["group"] for row in json.loads(ranks_json.render(ranks))["collectives"]] == ["dp", "tp"]


def test_the_next_command_compares_the_late_rank_with_a_usual_one(
    made_ranks: Callable[..., Any], replaced: Callable[..., Any]
) -> None:
    ranks = made_ranks(4)
    assert ranks_summary.next_command(ranks) == "tracehunch diff run/rank2.json.gz run/rank1.json.gz"
    spaced = tuple(replaced(row, sources=(f"my run/r{row.rank}.json",)) for row in ranks.rows)
    command = ranks_summary.next_command(replaced(ranks, rows=spaced))
    assert command == "tracehunch diff 'my run/r2.json' 'my run/r1.json'"
    calm = replaced(made_ranks(4, late=None), odd=())
    assert ranks_summary.next_command(calm) == "tracehunch explain exposed-communication"
    nothing = replaced(calm, findings=())
    assert ranks_summary.next_command(nothing) == "tracehunch look run/rank0.json.gz"


def test_lists_of_ranks_and_sizes_in_words() -> None:
    assert named([3]) == "rank 3"
    assert named([5, 0, 1, 2, 4, 9]) == "ranks 0-2, 4, 5, 9"
    assert named(range(0, 40, 2)) == "ranks 0, 2, 4, 6, 8, 10 and 14 more"
    assert bytes_text(16 << 20, 25 << 20) == "16-25 MiB"
    assert bytes_text(512, 1 << 20) == "512 B-1 MiB"
    assert bytes_text(None, None) == "?"


def test_ascii_where_the_output_takes_no_more(made_ranks: Callable[..., Any]) -> None:
    for n_ranks in (4, 256):
        assert text_of(made_ranks(n_ranks), view=View(unicode=False)).isascii()


def test_colour_is_never_all_there_is(made_ranks: Callable[..., Any]) -> None:
    plain = text_of(made_ranks(4))
    coloured = text_of(made_ranks(4), view=View(colour=True))
    assert "\x1b[1;33mwarning" in coloured
    stripped = "\n".join(line.rstrip() for line in re.sub("\x1b[^m]*m", "", coloured).splitlines())
    assert stripped == plain.rstrip("\n")


def hostile(ranks: Any, replaced: Callable[..., Any]) -> Any:
    rows = tuple(replaced(row, labels=(EVIL,), sources=(EVIL,), idle_ns={EVIL: 5}) for row in ranks.rows)
    finding = Finding("straggler", EVIL, "warning", "high", 1.0, EVIL, EVIL, EVIL, ())
    return replaced(
        ranks,
        rows=rows,
        matched=tuple(replaced(one, kind=EVIL, group=EVIL, dtype=EVIL) for one in ranks.matched),
        bandwidth=tuple(replaced(one, kind=EVIL) for one in ranks.bandwidth),
        odd=tuple(replaced(one, scope=EVIL, key=EVIL, seen=EVIL) for one in ranks.odd),
        findings=(finding,),
        notices=tuple(replaced(one, message=EVIL) for one in ranks.notices),
        unread=tuple(replaced(one, label=EVIL, why=EVIL) for one in ranks.unread),
        torch=(EVIL,),
        devices=(EVIL,),
        other_jobs=(EVIL,),
    )


def test_hostile_names_act_in_no_format(made_ranks: Callable[..., Any], replaced: Callable[..., Any]) -> None:
    ranks = hostile(made_ranks(4), replaced)
    markdown = ranks_markdown.render(ranks, sources=[EVIL], all_ranks=True)
    reports = [
        ranks_text.render(ranks, sources=[EVIL], all_ranks=True),
        markdown,
        ranks_github.render(ranks, sources=[EVIL]),
        ranks_json.render(ranks).decode(),
    ]
    for report in reports:
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", report)
    html = MarkdownIt("gfm-like", {"linkify": False, "html": False}).render(markdown)
    assert "<script" not in html
    assert "<a " not in html
    assert "@" not in markdown
    assert {line.count("|") for line in markdown.splitlines() if line.startswith("| ")} <= {3, 5, 7, 9, 13}


def test_markdown_holds_what_the_terminal_says(made_ranks: Callable[..., Any]) -> None:
    markdown = ranks_markdown.render(made_ranks(4), sources=["run"])
    assert markdown.startswith("<!-- tracehunch:ranks -->\n\n## tracehunch ranks <code>run</code>")
    assert "| 1 | 3 | 33.00 ms | 100.0 ms | 68% | 13% | 0.5% | 18% | 12% waiting for launches |" in markdown
    assert (
        "| <code>allreduce</code> | 4 | 25 MiB | 30 | 120.0 us | 328 GB/s | 300.0 us | 1 (67%) |" in markdown
    )
    assert "- rank 1 came last to 45 of 60 collectives" in markdown
    assert "- **truncated**: cut short" in markdown
    assert len(ranks_markdown.render(made_ranks(256), all_ranks=True)) < 65_536


def test_workflow_commands(made_ranks: Callable[..., Any]) -> None:
    lines = ranks_github.render(made_ranks(4), sources=["run"]).splitlines()
    assert lines[0].startswith(
        "::warning title=straggler in ProfilerStep of rank 1::rank 1 comes last to 100%25"
    )
    assert "::warning title=not read::x.json (1.2 KiB): no trace" in "\n".join(lines)
    assert "::notice title=missing-ranks::no file of rank 9" in lines
    assert (
        lines[-1]
        == "tracehunch: run: 4 ranks; findings: 1 warning, 1 note; warnings first, then by time at stake"
    )
