"""Whole outputs as a person sees them, byte for byte: narrow and wide, plain and in colour, in old encodings.

TRACEHUNCH_UPDATE_SNAPSHOTS=1 rewrites the snapshots: read the diff.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tracehunch.cli import main

HERE = Path(__file__).parent / "snapshots"
TESTS = Path(__file__).parents[1]
UPDATE = bool(os.environ.get("TRACEHUNCH_UPDATE_SNAPSHOTS"))
SEEDS = "data/h200/seeds"
HUNCH = """\
[[guess]]
scope = "attn_fwd"
kernels = 5
any_copies = 0
sdpa.backend = "flash"
gpu_time = "< 200us"
bound = "memory"
why = "five ops, five kernels"
"""
COMMANDS = {
    "look": ["look", f"{SEEDS}/naive.json.gz"],
    "look-train": ["look", "data/h200/models/llama_sdpa_train.json.gz"],
    "look-cpu": ["look", "data/cpu/train_mlp.json.gz"],
    "check": ["check", "HUNCH", f"{SEEDS}/naive.json.gz"],
    "diff": ["diff", f"{SEEDS}/naive.json.gz", f"{SEEDS}/sdpa_flash.json.gz"],
    "why": ["guess", "--why", f"{SEEDS}/shapes_sdpa_flash.json.gz"],
    "attention": ["attention", "--device", "recorded"],
}
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def hunch(tmp_path: Path) -> Path:
    path = tmp_path / "hunch.toml"
    path.write_text(HUNCH)
    return path


def output(name: str, hunch: Path, monkeypatch: pytest.MonkeyPatch, **env: str) -> str:
    monkeypatch.chdir(TESTS)
    for key in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "GITHUB_ACTIONS"):
        monkeypatch.delenv(key, raising=False)
    args = [str(hunch) if one == "HUNCH" else one for one in COMMANDS[name]]
    result = CliRunner().invoke(main, args, env=env)
    assert result.exit_code in (0, 1), result.output
    return result.stdout


def same_as(name: str, seen: str) -> None:
    path = HERE / name
    if UPDATE:
        path.write_bytes(seen.encode())
    assert seen == path.read_bytes().decode()


@pytest.mark.parametrize("name", ["look-cpu", "check", "diff", "why"])
def test_80_columns(name: str, hunch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = output(name, hunch, monkeypatch, COLUMNS="80")
    same_as(f"{name}-80.txt", seen)


@pytest.mark.parametrize("name", ["look-train", "check", "diff", "why", "attention"])
def test_200_columns_in_colour(name: str, hunch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = output(name, hunch, monkeypatch, COLUMNS="200", FORCE_COLOR="1")
    same_as(f"{name}-200.ansi", seen)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("width", [80, 200])
def test_lines_fit_colour_only_colours_and_a_pipe_gets_none(
    name: str, width: int, hunch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = output(name, hunch, monkeypatch, COLUMNS=str(width))
    coloured = output(name, hunch, monkeypatch, COLUMNS=str(width), FORCE_COLOR="1")
    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    assert [one.rstrip() for one in ESCAPE.sub("", coloured).splitlines()] == plain.splitlines()
    assert output(name, hunch, monkeypatch, COLUMNS=str(width), FORCE_COLOR="1", NO_COLOR="1") == plain
    commands = ("Next: ", "before  ", "after  ", "Why SDPA ran")
    assert not [one for one in plain.splitlines() if len(one) > width and not one.startswith(commands)]


@pytest.mark.parametrize(
    ("encoding", "form"), [("cp1252", "terminal"), ("cp437", "terminal"), ("cp850", "markdown")]
)
def test_code_page_gets_what_it_can_show(encoding: str, form: str) -> None:
    command = [sys.executable, "-m", "tracehunch", *COMMANDS["attention"], "--format", form]
    env = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "80"}
    result = subprocess.run(command, cwd=TESTS, capture_output=True, check=True, env=env)
    text = result.stdout.decode("ascii")
    assert "\\u" not in text
    assert ("textbook/expert -> seen" if form == "terminal" else "textbook/expert &#8594; seen") in " ".join(
        text.split()
    )
    assert b"Traceback" not in result.stderr
    result.stderr.decode(encoding)


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal of its own")
@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
def test_terminal_gets_colour_where_it_shows_it(
    env: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pty  # noqa: PLC0415  # not on Windows

    for key in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(key, raising=False)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tracehunch", *COMMANDS["why"]]
    with subprocess.Popen(
        command, cwd=TESTS, stdout=theirs, stderr=subprocess.DEVNULL, env={**os.environ, **env}
    ) as running:
        os.close(theirs)
        seen = b""
        while True:
            try:
                chunk = os.read(ours, 65_536)
            except OSError:  # Linux says so that the other end is closed
                break
            if not chunk:
                break
            seen += chunk
        assert running.wait() == 0
    os.close(ours)
    assert b"Why SDPA ran" in seen
    assert (b"\x1b[" in seen) is coloured
