"""``%%hunch`` in a running kernel: what is asked, what runs, what is shown."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence


def _texts(shown: Sequence[dict[str, Any]]) -> list[str]:
    return [one.get("text") or one.get("data", {}).get("text/plain", "") for one in shown]


def _report(shown: Sequence[dict[str, Any]]) -> dict[str, str]:
    found = [one["data"] for one in shown if "text/html" in one.get("data", {})]
    assert len(found) == 1
    return found[0]


def test_a_typed_guess_is_sealed_before_the_cell_runs_and_judged_after(typist: Any) -> None:
    answers = ["2", "none", "matmul", ""]
    shown = typist.run("%%hunch\nprint('the cell')\nx @ x;", answers)
    texts = _texts(shown)
    assert len(typist.prompts) == 4
    assert typist.prompts[0].startswith("Your guess for a run of this cell?")
    assert texts[0].startswith("You guess leaf_ops 2, sdpa.backend none, dominant led by matmul; sealed ")
    assert texts[1] == "the cell\n"
    assert "Verdict  2 held, 1 surprise" in _report(shown)["text/plain"]
    assert texts[-1].startswith("You had 2 of 3 guesses right; over time ")


def test_a_typed_guess_is_written_to_the_journal(typist: Any) -> None:
    typist.run("%%hunch\nx.relu();", ["1", "", "", ""])
    entry = json.loads(Path(os.environ["TRACEHUNCH_JOURNAL"]).read_text().splitlines()[-1])
    assert entry["claims"] == {"leaf_ops": "== 1"}
    assert entry["scope"] == "cell"


def test_an_answer_that_makes_no_sense_is_asked_about_once_more_then_skipped(typist: Any) -> None:
    shown = typist.run("%%hunch\nx.relu();", ["five", "many", "flsh", "none", "", ""])
    texts = _texts(shown)
    assert "once more" in texts[0]
    assert "skipped" in texts[1]
    assert "did you mean flash?" in texts[2]
    assert texts[3].startswith("You guess sdpa.backend none; sealed ")


def test_where_nobody_can_be_asked_it_says_how_to_guess_and_still_looks(typist: Any) -> None:
    shown = typist.run("%%hunch\nx.relu();")
    assert "%%hunch leaf_ops=5" in _texts(shown)[0]
    assert "Verdict" not in _report(shown)["text/plain"]
    assert typist.reply["status"] == "ok"


def test_claims_in_the_line_are_judged_without_asking(typist: Any) -> None:
    shown = typist.run('%%hunch leaf_ops=3 sdpa.backend=none cpu_time="< 10s"\nx.relu();', ["never asked"])
    assert typist.prompts == []
    assert "2 held, 1 surprise" in _report(shown)["text/plain"]


def test_claims_of_a_file(typist: Any, tmp_path: Path) -> None:
    hunch = tmp_path / "hunch.toml"
    hunch.write_text('[[guess]]\nscope = "relu"\nleaf_ops = 1\n')
    shown = typist.run(f"%%hunch --guess {hunch}\nx.relu();")
    assert _texts(shown)[0].startswith("You guess leaf_ops 1 in relu; sealed ")
    assert "1 held" in _report(shown)["text/plain"]


def test_what_the_cell_assigns_stays_and_its_last_value_is_shown_but_not_recorded(typist: Any) -> None:
    shown = typist.run("%%hunch leaf_ops=1\ny = x.relu()\ny")
    assert [one["output_type"] for one in shown] == ["display_data", "execute_result", "display_data"]
    assert "1 held" in _report(shown)["text/plain"]  # formatting y would have run many ops more
    assert _texts(typist.run("y.shape, _.sum().item()")) == ["(torch.Size([8, 8]), 64.0)"]


def test_a_silenced_value_is_not_shown(typist: Any) -> None:
    shown = typist.run("%%hunch --no-ask\nx.relu();")
    assert [one["output_type"] for one in shown] == ["display_data"]


def test_a_cell_runs_once_unless_more_is_asked_for(typist: Any, tmp_path: Path) -> None:
    typist.run("n = 0")
    typist.run("%%hunch --no-ask\nn += 1")
    assert _texts(typist.run("n")) == ["1"]
    typist.run(f"%%hunch --no-ask --warmup 2 --steps 3 --trace {tmp_path / 't.json.gz'}\nn += 1\nx.relu()")
    assert _texts(typist.run("n")) == ["6"]
    events = json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"]
    assert sum(one["name"] == "aten::relu" for one in events) == 3
    assert sum(one["name"] == "cell" and one["cat"] == "user_annotation" for one in events) == 3


def test_what_was_seen_can_be_kept(typist: Any) -> None:
    typist.run("%%hunch leaf_ops=1 -o seen\nx.relu();")
    assert _texts(typist.run("len(seen.verdict.held), seen.checked.findings")) == ["(1, ())"]


def test_an_error_is_shown_as_without_the_magic_after_what_ran(typist: Any) -> None:
    shown = typist.run("%%hunch leaf_ops=1\ny = x.relu()\n\nraise ValueError('boom')")
    last = shown[-1]
    assert (last["output_type"], last["ename"], last["evalue"]) == ("error", "ValueError", "boom")
    traceback = "\n".join(last["traceback"])
    assert "line 4" in _plain(traceback)  # as it is counted in the cell
    assert "tracehunch" not in traceback
    assert "CellRaised" not in traceback
    assert "1 held" in _report(shown)["text/plain"]
    assert typist.reply["status"] == "error"
    assert _texts(typist.run("y.shape")) == ["torch.Size([8, 8])"]


def test_an_error_of_ours_in_the_cell_is_the_users_own(typist: Any) -> None:
    shown = typist.run("%%hunch --no-ask\nimport tracehunch\nraise tracehunch.TracehunchError('mine')")
    assert (shown[-1]["ename"], shown[-1]["evalue"]) == ("TracehunchError", "mine")


def test_a_cell_that_raises_while_it_warms_up_shows_no_report_of_an_earlier_one(
    typist: Any, tmp_path: Path
) -> None:
    path = tmp_path / "t.json.gz"
    typist.run(f"%%hunch --no-ask --trace {path}\nx.relu()")
    shown = typist.run(f"%%hunch --no-ask --warmup 1 --trace {path}\nraise ValueError('boom')")
    assert [one["output_type"] for one in shown] == ["error"]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("%%hunch kernel=3\nn = -1", "did you mean kernels?"),
        ("%%hunch --no-such\nn = -1", "%%hunch has no option --no-such"),
        ("%%hunch --steps 0\nn = -1", "'0' is no number from 1"),
        ("%%hunch --steps many\nn = -1", "'many' is no number from 1"),
        ("%%hunch -o class\nn = -1", "'class' is no name for a variable"),
        ("%%hunch --guess nowhere.toml\nn = -1", "cannot read nowhere.toml"),
        ("%%hunch --guess a.toml kernels=5\nn = -1", "keep one"),
        ("%%hunch --trace t.txt --no-ask\nn = -1", "t.txt: its name ends neither in .json nor in .json.gz"),
        ("%%hunch cpu_time='< 3us\nn = -1", "in quotes"),
        ("%%hunch\nimport asyncio\nn = -1\nawait asyncio.sleep(0)", "await"),
    ],
)
def test_what_cannot_be_understood_is_told_in_a_line_and_the_cell_not_run(
    typist: Any, cell: str, says: str
) -> None:
    typist.run("n = 0")
    shown = typist.run(cell)
    assert len(shown) == 1
    assert shown[0]["text"].startswith("UsageError: ")
    assert says in shown[0]["text"]
    assert typist.reply["status"] == "error"
    assert _texts(typist.run("n")) == ["0"]


def test_a_syntax_error_is_told_before_anybody_is_asked(typist: Any) -> None:
    shown = typist.run("%%hunch\ny = (", ["never asked"])
    assert typist.prompts == []
    assert shown[-1]["ename"] == "SyntaxError"


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
