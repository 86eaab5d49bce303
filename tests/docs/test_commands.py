"""Every command of the documentation runs, exits as it should, and shows what the page shows."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tracehunch.cli import main

ROOT = Path(__file__).parents[2]
SEEDS = ROOT / "tests/data/h200/seeds"

_spec = importlib.util.spec_from_file_location("docs_pages", Path(__file__).with_name("pages.py"))
pages = importlib.util.module_from_spec(_spec)
sys.modules["docs_pages"] = pages
_spec.loader.exec_module(pages)

PAGES = pages.pages()
NAMES = {page: page.relative_to(pages.DOCS).as_posix() for page in PAGES}

READERS = {
    "trace.json.gz": "naive",
    "before.json.gz": "naive",
    "after.json.gz": "naive_inplace",
    "main.json.gz": "naive_inplace",
    "branch.json.gz": "naive",
    "one.json.gz": "sdpa_flash",
    "two.json.gz": "sdpa_cudnn",
}
"""Files that a reader has, by the names that pages give them."""

TRAINING = """
import torch
def make_step():
    layer = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
    x = torch.randn(4, 8)

    def step():
        layer(x).sum().backward()
        optimizer.step()

    return step

if __name__ == "__main__":
    step = make_step()
    for _ in range(8):
        step()
"""

OTHERS = {"torchrun", "hf", "curl", "cd", "pip", "git", "make", "pytest", "tensorboard", "nsys", "docker"}
"""Programs that pages name, and which are not run here."""

SMALL = ["--batch", "1", "--heads", "1", "--seq", "32", "--steps", "2", "--no-verify"]
"""What makes a run of the series on this machine short."""


@pytest.fixture
def reader(tracehunch, monkeypatch):
    """Return the command line of a reader who has some traces."""
    for name, seed in READERS.items():
        (tracehunch.folder / name).symlink_to(SEEDS / f"{seed}.json.gz")
    (tracehunch.folder / "traces").mkdir()
    (tracehunch.folder / "traces" / "rank0.json.gz").symlink_to(SEEDS / "naive.json.gz")
    for name in ("train.py", "examples/train.py", "my/package/__main__.py"):
        path = tracehunch.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TRAINING)
    (tracehunch.folder / "hunch.toml").write_text('[[guess]]\nscope = "step"\nleaf_ops = "> 0"\n')
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    return tracehunch


def ran(words, command, reader, codes):
    """Run a command; return what it wrote to standard output, and to both."""
    if set(command) & set("|><;&$") or words[0] != "tracehunch" or words[1] == "run":
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=reader.folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode in codes, (command, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout, done.stdout + done.stderr
    is_live = words[1] == "attention" and "recorded" not in words
    result = reader(*words[1:], *(SMALL if is_live else []), codes=codes)
    return result.stdout, result.output


def follow(step, reader):
    """Do as the page says; what it shows is what comes."""
    words = shlex.split(step.command)
    if words[0] not in {"tracehunch", "python"} or not step.is_run or words[1] == "open":
        assert words[0] in OTHERS | {"tracehunch", "python"}, step.command
        assert words[0] != "tracehunch" or valid(step.command)
        return
    out, both = ran(words, step.command, reader, step.codes)
    if step.output:
        assert pages.agrees(step.output, out) or pages.agrees(step.output, both), (
            f"{step.command}\nshown:\n{step.output}\ncame:\n{both}"
        )


def valid(command):
    """Whether a command's verb, and each of its options, exists; an error says what does not."""
    words = [word for word in shlex.split(command.replace("'", "")) if word not in {"|", ">"}][1:]
    at = click.Context(main, info_name="tracehunch")
    one = main
    while words and isinstance(one, click.Group):
        inner = one.get_command(at, words[0]) if words[0] in one.list_commands(at) else None
        if inner is None:
            break
        one, words = inner, words[1:]
    assert one is not main or not words or words[0].startswith("-") or words[0].isupper(), (
        f"no verb: {command}"
    )
    known = {name for param in one.get_params(at) for name in (*param.opts, *param.secondary_opts)}
    given = (
        [] if one.name == "explain" else [word.split("=")[0] for word in words if re.match(r"--?\w", word)]
    )
    if one.name == "run":
        given = given[: next((i for i, word in enumerate(words) if word.endswith(".py")), len(given))]
    assert set(given) <= known, f"no option {set(given) - known}: {command}"
    return True


@pytest.mark.parametrize("page", PAGES, ids=NAMES.get)
def test_commands_do_what_the_page_says(page, reader):
    text = page.read_text(encoding="utf-8")
    if "tracehunch run" in text or "guess_model.py" in text:
        pytest.importorskip("torch")
    for step in pages.steps(text):
        if isinstance(step, pages.File):
            (reader.folder / step.name).write_text(step.text, encoding="utf-8")
        else:
            follow(step, reader)


@pytest.mark.parametrize("page", PAGES, ids=NAMES.get)
def test_commands_in_sentences_exist(page, tracehunch):
    for command in pages.inline(page.read_text(encoding="utf-8")):
        assert valid(command.replace("\n", " "))
        word = re.fullmatch(r"tracehunch explain ([a-z][\w.-]*)", command)
        assert not word or tracehunch("explain", word.group(1), codes=(0,)).stdout


def test_the_training_that_pages_run_is_one():
    pytest.importorskip("torch")
    command = [sys.executable, ROOT / "examples/train.py", "--steps", "1", "--length", "16"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("step 0: loss")


def test_what_is_shown_has_to_come():
    assert pages.agrees("a\n...\nc\n", "a\nb\nb\nc  \n")
    assert pages.agrees("a\n...\n", "a\n")
    assert not pages.agrees("a\nc\n", "a\nb\nc\n")
    assert not pages.agrees("b\n...\n", "a\nb\n")


def test_commands_that_do_not_exist_are_found():
    for command in (
        "tracehunch loo trace.json",
        "tracehunch look --al trace.json",
        "tracehunch guess sdpa --row x",
    ):
        with pytest.raises(AssertionError):
            valid(command)
