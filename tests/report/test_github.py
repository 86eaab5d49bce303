from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import tracehunch
from tracehunch.cli import main
from tracehunch.errors import ReadError
from tracehunch.report import github
from tracehunch.report.cut import SUMMARY_LIMIT
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = ("error", "warning", "notice")


@dataclass(frozen=True)
class Seen:
    """A command as the runner of GitHub Actions reads it from a line."""

    kind: str
    properties: dict[str, str]
    text: str


def runner(line: str) -> Seen | None:
    """Read a line as the runner does: today's commands at its start, else those of old anywhere in it."""
    trimmed = line.lstrip()
    if trimmed.startswith("::") and (end := trimmed.find("::", 2)) > 0:
        head, text = trimmed[2:end], trimmed[end + 2 :]
        kind, _, listed = head.partition(" ")
        pairs = (one.split("=", 1) for one in listed.split(",") if "=" in one)
        properties = {key.strip(): unescaped(value, ("%3A", ":"), ("%2C", ",")) for key, value in pairs}
        return Seen(kind, properties, unescaped(text))
    old = re.search(r"##\[(\S+?)[\s\]]", line)
    return Seen(old[1], {}, "") if old else None


def unescaped(text: str, *more: tuple[str, str]) -> str:
    for coded, plain in (("%0D", "\r"), ("%0A", "\n"), *more, ("%25", "%")):
        text = text.replace(coded, plain)
    return text


HOSTILE = [
    "a\n::error::b", "100%", "%0A::error::x", "x::y", "a,title=b", "a\r\nb", "🔥 kernel", "##[error]x",
    "::stop-commands::x", "  ::add-mask::x", "%25", "", " ",
]  # fmt: skip
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60))


@given(severity=st.sampled_from(["error", "warning", "note"]), title=texts, said=texts)
def test_text_stays_text(severity: str, title: str, said: str) -> None:
    line = github.command(severity, title, said)
    assert len(line.splitlines()) == 1
    seen = runner(line)
    assert seen is not None
    assert seen.kind in KINDS
    assert set(seen.properties) <= {"title"}
    shown = title.replace("##[", "## [")
    assert seen.properties["title"] == printable(shown)
    lines = said.replace("##[", "## [").split("\n")
    assert seen.text == "\n".join(printable(one) for one in lines)


@given(said=texts)
def test_plain_text_is_no_command(said: str) -> None:
    assert all(runner(line) is None for line in github.defused(said).split("\n"))


def test_the_two_tests_above_can_fail() -> None:
    assert runner("##[error]x") is not None
    assert runner(" ::error::x") is not None
    unsafe = runner("::error title=a,file=b::c")
    assert unsafe is not None
    assert set(unsafe.properties) == {"title", "file"}


def test_name_of_64_kb_is_cut() -> None:
    line = github.command("error", "n" * 65_536, "\n".join(["m" * 65_536] * 100))
    seen = runner(line)
    assert seen is not None
    assert len(seen.properties["title"]) <= 255
    assert len(line.encode()) < 64 * 1024


def commands(text: str) -> Iterator[Seen]:
    for line in text.splitlines():
        if (seen := runner(line)) is not None:
            yield seen


def test_no_case_gives_a_command_of_its_own(cases: Path) -> None:
    read = 0
    for path in sorted(cases.iterdir()):
        try:
            look = tracehunch.look(path)
        except ReadError:
            continue
        found = list(commands(github.render(look)))
        assert {one.kind for one in found} <= set(KINDS), path.name
        assert len(found) <= len(look.checked.findings), path.name
        ids = {one.id for one in look.checked.findings}
        assert {one.properties["title"].split(" ")[0] for one in found} <= ids, path.name
        read += 1
    assert read > 60


def test_at_most_ten_of_a_severity_and_the_rest_is_counted(h200: Path) -> None:
    look = tracehunch.look(h200 / "models" / "llama_sdpa_train.json.gz")
    notes = [one for one in look.checked.findings if one.severity == "note"]
    many = look.checked.findings + tuple(notes) * 3
    from dataclasses import replace  # noqa: PLC0415  # only here

    said = github.render(replace(look, checked=replace(look.checked, findings=many)))
    found = list(commands(said))
    total = 4 * len(notes)
    assert total > github.MOST
    assert sum(one.kind == "notice" for one in found) == github.MOST
    assert f"{total - github.MOST} more of severity note: only the step's summary has them" in said


def run(*args: str | Path, **env: str) -> Result:
    return CliRunner().invoke(main, list(map(str, args)), env={"GITHUB_ACTIONS": "true", **env})


def test_summary_gets_all_findings_and_stays_within_its_limit(h200: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    trace = h200 / "models" / "llama_sdpa_train.json.gz"
    told = len(tracehunch.look(trace).checked.findings)
    args = ("look", trace, "--format", "github")
    assert run(*args, GITHUB_STEP_SUMMARY=str(summary)).exit_code == 0
    report = summary.read_text()
    assert report.startswith("<!-- tracehunch:look -->")
    assert report.count("- fix: ") >= told - 1
    assert "--all shows" not in report
    before = SUMMARY_LIMIT - 2_000
    summary.write_text("x" * before)
    run(*args, GITHUB_STEP_SUMMARY=str(summary))
    assert before < summary.stat().st_size <= SUMMARY_LIMIT
    assert "**Cut here**" in summary.read_text()
    summary.write_text("x" * SUMMARY_LIMIT)
    full = run(*args, GITHUB_STEP_SUMMARY=str(summary))
    assert summary.stat().st_size == SUMMARY_LIMIT
    assert "the step's summary is full" in full.stderr


def test_annotations_are_there_though_the_summary_cannot_be_written(h200: Path, tmp_path: Path) -> None:
    trace = h200 / "seeds" / "naive.json.gz"
    result = run("look", trace, "--format", "github", GITHUB_STEP_SUMMARY=str(tmp_path / "none" / "x"))
    assert result.exit_code == 2
    assert "cannot add to the step's summary" in result.stderr
    assert len(list(commands(result.stdout))) == 2


@pytest.mark.parametrize("kind", ["terminal", "github"])
def test_hostile_names_make_no_commands_in_a_log(h200: Path, tmp_path: Path, kind: str) -> None:
    import gzip  # noqa: PLC0415  # only here

    raw = gzip.decompress((h200 / "seeds" / "naive.json.gz").read_bytes()).decode()
    trace = tmp_path / "hostile.json"
    trace.write_text(raw.replace('"attn_fwd"', '"::stop-commands::x ##[error]y"'))
    result = run("look", trace, "--format", kind)
    assert {one.kind for one in commands(result.stdout)} <= ({"warning"} if kind == "github" else set())
    assert not list(commands(result.stderr))
    assert "stop-commands" in result.stdout
