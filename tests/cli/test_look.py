from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracehunch.cli import main

DATA = Path(__file__).parents[1] / "data"
NAIVE = DATA / "h200" / "seeds" / "naive.json.gz"
FLASH = DATA / "h200" / "seeds" / "sdpa_flash.json.gz"
DAMAGED = DATA / "cases" / "public" / "truncated_in_name.json"
SCRIPTS = DATA / "cases" / "public" / "unicode_names_scripts.json"


def look(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["look", *map(str, args)], env={"NO_COLOR": "1", "COLUMNS": "80"})


def process(
    *args: str | Path, env: dict[str, str] | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    clean = {
        k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "TERM", "PYTHONUTF8")
    }
    return subprocess.run(
        [sys.executable, "-m", "tracehunch", "look", *map(str, args)],
        capture_output=True,
        check=False,
        input=stdin,
        env={**clean, **(env or {})},
    )


def test_the_report_goes_to_stdout_and_nothing_else_does() -> None:
    result = look(NAIVE)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.splitlines()[0] == str(NAIVE)
    assert "hidden-copy in attn_fwd" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("Next: tracehunch ")


def test_what_a_reader_must_be_told() -> None:
    said = " ".join(look(NAIVE).stdout.split())
    assert "NVIDIA H200, 132 SMs" in said
    assert "277 events, 23 GPU activities, 3 steps" in said
    assert "0% unattributed, 10% launched outside the recorded window (2 activities)" in said
    assert "no shapes, stacks or memory" in said
    assert "unclassified: 0% of GPU time" in said


def test_standard_input() -> None:
    done = process("-", "--format", "json", stdin=NAIVE.read_bytes())
    assert done.returncode == 0
    assert json.loads(done.stdout)["trace"]["events"] == 277


def test_a_folder_is_its_newest_trace(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS, tmp_path / "old.pt.trace.json")
    shutil.copy(NAIVE, tmp_path / "new.pt.trace.json.gz")
    os.utime(tmp_path / "old.pt.trace.json", (1, 1))
    result = look(tmp_path)
    assert result.exit_code == 0
    assert "277 events" in result.stdout
    assert "old.pt.trace.json" in result.stdout


@pytest.mark.parametrize(
    ("name", "start"),
    [("out.json", b'{\n  "schema": "tracehunch/1"'), ("out.md", b"<!-- tracehunch:look"), ("out.txt", b"/")],
)
def test_the_extension_picks_the_format(name: str, start: bytes, tmp_path: Path) -> None:
    result = look(NAIVE, "-o", tmp_path / name)
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"wrote {tmp_path / name}" in result.stderr
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_format_that_is_named_wins_over_the_extension(tmp_path: Path) -> None:
    look(NAIVE, "-o", tmp_path / "report.txt", "--format", "json")
    assert json.loads((tmp_path / "report.txt").read_bytes())["schema"] == "tracehunch/1"


def test_an_output_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    result = look(NAIVE, "-o", tmp_path / "no" / "such" / "out.json")
    assert result.exit_code == 2
    assert result.stderr.startswith("tracehunch: cannot write ")
    assert len(result.stderr.splitlines()) == 1


def test_a_write_that_fails_leaves_the_old_output_and_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    result = look(NAIVE, "-o", target)
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert target.read_text() == "old"


def test_the_trace_is_never_overwritten(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    shutil.copy(SCRIPTS, trace)
    before = trace.read_bytes()
    for source in (trace, tmp_path):
        result = look(source, "-o", trace)
        assert result.exit_code == 2
        assert "will not overwrite" in result.stderr
    assert trace.read_bytes() == before


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ([NAIVE], 0),
        ([FLASH, "--strict"], 0),
        ([NAIVE, "--strict"], 3),  # two kernels whose launch is not in the file
        ([DAMAGED], 0),
        ([DAMAGED, "--strict"], 3),
        ([NAIVE, "--fail-on", "error"], 0),
        ([NAIVE, "--fail-on", "warning"], 1),
        ([NAIVE, "--fail-on", "note"], 1),
        ([DAMAGED, "--strict", "--fail-on", "note"], 3),
        ([DATA / "nowhere.json"], 2),
    ],
)
def test_exit_codes(args: list[str | Path], code: int) -> None:
    assert look(*args).exit_code == code


def test_a_scope_by_name_pattern_or_end_of_its_path() -> None:
    stacked = DATA / "h200" / "models" / "llama_sdpa_train_stack.json.gz"
    for scope in ("LlamaForCausalLM_0/LlamaModel_0", "LlamaModel_0", "*LlamaModel_0"):
        result = CliRunner().invoke(main, ["look", str(stacked), "--scope", scope, "--format", "json"])
        assert [one["name"] for one in json.loads(result.stdout)["scopes"]] == [
            "LlamaForCausalLM_0/LlamaModel_0"
        ]


def test_an_unknown_scope_is_told_with_what_was_meant() -> None:
    result = look(NAIVE, "--scope", "atn_fwd")
    assert result.exit_code == 2
    assert result.stderr == "tracehunch: no scope 'atn_fwd'; did you mean attn_fwd?\n"


def test_top_limits_the_kernels() -> None:
    few = look(NAIVE, "--top", "2").stdout
    assert "5 more, " in few
    assert "Memset (Device)" not in few


def test_the_profilers_table_in_all_formats() -> None:
    assert "Self CUDA time total: 3.560ms" in look(NAIVE, "--table").stdout
    assert look(NAIVE, "--table", "--format", "markdown").stdout.startswith("```text\n")
    table = json.loads(look(NAIVE, "--table", "--format", "json").stdout)["table"]
    assert table["self_device_time_total_us"] == 3560.411


@pytest.mark.parametrize(
    "env", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"}]
)
@pytest.mark.parametrize("output_format", ["terminal", "markdown", "json"])
def test_an_output_that_takes_ascii_only_is_no_failure(env: dict[str, str], output_format: str) -> None:
    done = process(SCRIPTS, "--format", output_format, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    if output_format != "json":  # JSON is UTF-8 wherever it goes
        assert done.stdout.isascii()
        entities = output_format == "markdown"
        assert (b"&#27169;&#22411;" if entities else b"\\u6a21\\u578b") in done.stdout


def test_a_utf8_output_shows_names_as_they_are() -> None:
    done = process(SCRIPTS, env={"PYTHONIOENCODING": "utf-8"})
    assert "模型.前向" in done.stdout.decode()


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour(env: dict[str, str], coloured: bool) -> None:
    assert (b"\x1b[" in process(NAIVE, env=env).stdout) is coloured


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
@pytest.mark.parametrize(("term", "coloured"), [("xterm-256color", True), ("dumb", False)])
def test_a_terminal_gets_colour_unless_it_is_dumb(term: str, coloured: bool) -> None:
    import pty  # noqa: PLC0415  # POSIX only

    controller, terminal = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")} | {"TERM": term}
    command = [sys.executable, "-m", "tracehunch", "look", NAIVE.name]  # a whole path may be of any length
    with subprocess.Popen(command, cwd=NAIVE.parent, stdout=terminal, stderr=terminal, env=env) as child:
        os.close(terminal)
        seen = b""
        while chunk := _read(controller):
            seen += chunk
        child.wait()
    os.close(controller)
    assert b"hidden-copy" in seen
    assert (b"\x1b[1m" in seen) is coloured
    assert all(len(line) <= 80 for line in _plain(seen).splitlines())


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 65536)
    except OSError:  # Linux: the other end is closed
        return b""


def _plain(text: bytes) -> str:
    import re  # noqa: PLC0415  # loaded only where it is needed

    return re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).replace("\r", "")


def test_warnings_wrap_where_a_width_was_set_and_are_one_line_for_grep_elsewhere() -> None:
    warning = "! outside-window: "
    wrapped = process(NAIVE, env={"COLUMNS": "60"}).stdout.decode().splitlines()
    assert max(len(line) for line in wrapped if not line.startswith(("Next: ", str(NAIVE)))) <= 60
    assert any(line.strip().startswith(warning) for line in wrapped)
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    done = subprocess.run(
        [sys.executable, "-m", "tracehunch", "look", str(NAIVE)],
        capture_output=True,
        check=False,
        env=environment,
    )
    line = next(line for line in done.stdout.decode().splitlines() if warning in line)
    assert line.endswith("They count for the whole trace only")


def test_the_table_fits_60_columns() -> None:
    lines = process("--table", NAIVE, env={"COLUMNS": "60"}).stdout.decode().splitlines()
    assert max(len(line) for line in lines) <= 60


def test_all_shows_the_findings_beyond_the_eighth() -> None:
    """The eager Llama has more than eight; JSON has them all."""
    trace = DATA / "h200" / "models" / "llama_eager_prefill.json.gz"
    found = json.loads(look(trace, "--format", "json").stdout)["findings"]
    assert len(found) > 8
    few, everything = look(trace).stdout, look(trace, "--all").stdout
    assert f"{len(found) - 8} note" in few
    assert "--all shows all of them" in " ".join(few.split())
    assert "--all shows" not in " ".join(everything.split())
    assert everything.split("Scopes ")[0].count("    evidence ") == len(found)
