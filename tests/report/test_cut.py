from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

import tracehunch
from tracehunch.report import markdown
from tracehunch.report.cut import COMMENT_LIMIT, for_comment, for_summary
from tracehunch.report.summary import Selection

if TYPE_CHECKING:
    from pathlib import Path

lines = st.lists(st.text(alphabet="ab|🔥é", max_size=300), max_size=60)


@given(lines=lines, room=st.integers(0, 8_000))
def test_what_is_cut_fits_and_says_so(lines: list[str], room: int) -> None:
    report = "\n".join(["<!-- tracehunch:look -->", *lines, ""])
    cut = for_summary(report, room)
    assert len(cut.encode()) <= room
    if len(report.encode()) <= room:
        assert cut == report
    elif cut:
        assert cut.startswith("<!-- tracehunch:look -->\n")
        assert "**Cut here**: " in cut


def test_emoji_count_as_two_characters() -> None:
    report = "🔥" * 30 + "\n"
    whole = report * (COMMENT_LIMIT // 61)
    assert for_comment(whole) == whole
    more = whole + report * 2
    assert for_comment(more) != more
    assert len(for_comment(more).encode("utf-16-le")) // 2 <= COMMENT_LIMIT


def test_details_that_are_cut_open_are_closed() -> None:
    report = "\n".join(["<details><summary>x</summary>", *["y" * 100] * 2_000, "</details>", ""])
    cut = for_comment(report)
    assert cut.count("<details>") == cut.count("</details>") == 1
    assert cut.index("</details>") < cut.index("**Cut here**")
    assert cut.endswith("holds all.\n")


def test_report_of_many_kernels_fits_into_a_comment_with_its_marker(h200: Path) -> None:
    look = tracehunch.look(h200 / "models" / "llama_sdpa_train.json.gz")
    report = markdown.render(look, selection=Selection(top=1_000, all_scopes=True, all_findings=True))
    assert len(report) <= COMMENT_LIMIT
    assert report.startswith("<!-- tracehunch:look -->\n")
    short = markdown.render(look)
    assert "Cut here" not in short
