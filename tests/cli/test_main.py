from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from tracehunch.cli import main
from tracehunch.cli.main import VERBS
from tracehunch.errors import TracehunchError

if TYPE_CHECKING:
    from pathlib import Path


def run(
    *args: str, env: dict[str, str] | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "tracehunch", *args],
        capture_output=True,
        check=False,
        input=stdin,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80", **(env or {})},
    )


def test_help_lists_every_verb_and_loads_none() -> None:
    code = (
        "import sys, tracehunch.cli as c\n"
        "try: c.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'torch', 'msgspec', 'rich'} & set(sys.modules)\n"
        "sys.stderr.write(','.join(sorted(heavy)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stderr == ""
    assert all(verb in done.stdout for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_listed_verb_exists_and_takes_debug(verb: str) -> None:
    result = CliRunner().invoke(main, [verb, "--help"])
    assert result.exit_code == 0
    assert "--debug" in result.output


def test_no_verb_shows_the_help_on_stderr() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Usage: tracehunch" in done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["lok", "x"], "no verb 'lok'; did you mean look?"),
        (["look", "x", "--scop", "y"], "no option --scop; did you mean --scope?"),
        (["look", "x", "--format", "jsn"], "'jsn' is not one of 'terminal', 'json', 'markdown'"),
        (["look", "x", "--top", "0"], "0 is not in the range x>=1"),
        (["look"], "Missing argument 'TRACE...'"),
        (["look", "x", "-o", "report.pdf"], "report.pdf: the extension names no format"),
    ],
)
def test_a_usage_error_is_one_line_and_a_hint(args: list[str], said: str) -> None:
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 2


def test_a_file_in_place_of_a_verb_is_told_what_is_missing(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text("{}")
    result = CliRunner().invoke(main, [str(trace)])
    assert result.exit_code == 2
    assert f"did you mean tracehunch look {trace}?" in result.stderr


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (
            TracehunchError("cannot read x", "it is empty", "record again"),
            2,
            "tracehunch: cannot read x: it is empty; record again",
        ),
        (KeyError("k"), 2, "tracehunch: internal error: KeyError: 'k' (test_main.py:"),
        (KeyboardInterrupt(), 130, "tracehunch: interrupted"),
        (MemoryError(), 2, "tracehunch: out of memory"),
    ],
)
def test_a_failure_is_one_line_and_a_code(
    failure: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _failing(failure, [], monkeypatch)
    assert result.exit_code == code
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("args", [["--debug", "look", "x"], ["look", "x", "--debug"]])
def test_debug_shows_the_traceback(args: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    result = _failing(KeyError("k"), args, monkeypatch)
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr


def test_hostile_text_in_an_error_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _failing(TracehunchError("no \x1b[31mfile\n\u202e"), [], monkeypatch)
    assert result.stderr == "tracehunch: no \\x1b[31mfile \\u202e\n"


def test_nobody_reading_the_result_is_no_failure_to_talk_about(h200: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "tracehunch", "look", str(h200 / "seeds" / "naive.json.gz")],
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_version() -> None:
    assert run("--version").stdout.startswith(b"tracehunch ")


def _failing(
    failure: BaseException, args: list[str], monkeypatch: pytest.MonkeyPatch
) -> click.testing.Result:
    @click.command("look")
    @click.argument("trace")
    @click.option("--debug", is_flag=True, expose_value=False, callback=_debug, is_eager=True)
    def look(trace: str) -> int:  # noqa: ARG001  # click passes it
        raise failure

    monkeypatch.setattr("tracehunch.cli.look.look", look)
    return CliRunner().invoke(main, args or ["look", "x"])


def _debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.find_root().obj.debug = True
