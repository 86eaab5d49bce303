"""The pages of the other verbs: attention, check, diff, guess."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from tracehunch.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).parents[2] / "data"
SEEDS = DATA / "h200" / "seeds"
HUNCH = """\
[[guess]]
scope = "attn_fwd"
kernels = 5
any_copies = 0
sdpa.backend = "flash"
gpu_time = "< 200us"
allocations = 3
bound = "memory"

[[guess]]
scope = "nowhere"
kernels = 3
"""
MODEL = """\
import torch

def make():
    layer = torch.nn.Linear(64, 64)
    return (lambda x: layer(x).relu().sum()), (torch.randn(8, 64),), {}
"""


def written(folder: Path, *args: str | Path) -> str:
    output = folder / "report.html"
    result = CliRunner().invoke(main, [*map(str, args), "-o", str(output)])
    assert result.exit_code in (0, 1), result.output
    return output.read_text()


def told(*args: str | Path) -> Any:
    return json.loads(CliRunner().invoke(main, [*map(str, args), "--format", "json"]).stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pages")
    (made / "hunch.toml").write_text(HUNCH)
    (made / "model.py").write_text(MODEL)
    return made


@pytest.fixture(scope="module")
def attention(folder: Path) -> str:
    return written(folder, "attention", "--device", "recorded")


@pytest.fixture(scope="module")
def check(folder: Path) -> str:
    return written(folder, "check", folder / "hunch.toml", SEEDS / "naive.json.gz")


@pytest.fixture(scope="module")
def diff(folder: Path) -> str:
    return written(folder, "diff", SEEDS / "naive.json.gz", SEEDS / "sdpa_flash.json.gz")


@pytest.fixture(scope="module")
def diff_on_cpu(folder: Path) -> str:
    return written(folder, "diff", DATA / "cpu" / "naive.json.gz", DATA / "cpu" / "sdpa_flash.json.gz")


@pytest.fixture(scope="module")
def guess(folder: Path) -> str:
    pytest.importorskip("torch", reason="torch is not installed")
    target = f"{folder / 'model.py'}:make"
    return written(folder, "guess", target, "--gpu", "h200", "--torch", "2.11")


@pytest.mark.parametrize("name", ["attention", "check", "diff", "diff_on_cpu", "guess"])
@pytest.mark.parametrize("width", [1280, 390])
def test_page_is_well_formed_and_opens_without_a_word(
    request: pytest.FixtureRequest, parse: type[Any], visit: Callable[..., Any], name: str, width: int
) -> None:
    html = request.getfixturevalue(name)
    found = parse(html)
    assert not found.wrong
    assert not found.open
    ids = [attrs["id"] for _, attrs in found.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for tag, attrs in found.tags if tag == "a"]
    assert all(link is not None and link.startswith("#") and link[1:] in ids for link in links)
    seen = visit(html.encode(), width=width).ready()
    assert seen.misdeeds == []
    assert seen.eval("document.documentElement.scrollWidth") == width


def test_attention_shows_guess_and_seen_as_the_json_does(
    attention: str, parse: type[Any], visit: Callable[..., Any]
) -> None:
    found = parse(attention)
    caption = next(name for name in found.tables if name.startswith("Attention variants"))
    report = told("attention", "--device", "recorded")
    variants = {one["name"]: one for one in report["attention"]["variants"]}
    shown = found.column(caption, "variant")
    assert [name for name, _ in shown] == list(variants)
    for (name, _), (saw, _), (time, _) in zip(
        shown, found.column(caption, "saw"), found.column(caption, "GPU time"), strict=True
    ):
        scopes = variants[name]["look"]["scopes"]
        scope = next(one for one in scopes if one["name"] == variants[name]["label"])
        assert saw == f"{scope['facts']['kernels']}+{scope['facts']['copies']}"
        assert float(time.split(" ")[0].replace(",", "")) == pytest.approx(
            scope["facts"]["gpu_time_us"], abs=0.06
        )
    assert [cell for cell, _ in found.column(caption, "textbook")] == ["5", "5", "1", "1", "1", "1", "1"]
    assert [cell for cell, _ in found.column(caption, "expert")][:3] == ["5+1", "5", "20"]
    drawn = visit(attention.encode()).ready().page
    assert drawn.locator("#glance svg .seen").count() == drawn.locator("#glance svg .guess").count() == 7


def test_attention_goes_from_a_finding_to_its_variants_timeline(
    attention: str, visit: Callable[..., Any]
) -> None:
    seen = visit(attention.encode()).ready()
    page = seen.page
    assert page.input_value("#tl-trace") == "naive"
    card = page.locator("[data-evidence][data-trace=sdpa_math] >> nth=0")
    card.locator(".evidence").click()
    seen.ready()
    page.locator("#tl-found", has_text="marked").wait_for()
    assert page.input_value("#tl-trace") == "sdpa_math"
    page.select_option("#tl-trace", "sdpa_cudnn")
    page.wait_for_selector("#tl[data-ready]")
    assert page.inner_text("#tl-details") == ""
    page.fill("#tl-search", "cudnn")
    page.keyboard.press("Enter")
    assert "cudnn" in page.inner_text("#tl-details")
    assert seen.misdeeds == []


def test_check_shows_what_was_guessed_beside_what_was_seen(
    check: str, folder: Path, visit: Callable[..., Any]
) -> None:
    page = visit(check.encode()).ready().page
    verdict = told("check", folder / "hunch.toml", SEEDS / "naive.json.gz")["verdict"]
    cards = page.locator("#verdict article[id]")
    assert cards.count() == len(verdict["surprises"]) == 4
    stakes = [one["time_at_stake_us"] for one in verdict["surprises"]]
    assert sorted(stakes, reverse=True)[:3] == pytest.approx([863.5, 640.9, 127.6], abs=0.05)
    first = cards.first.inner_text()
    assert re.search(r"gpu_time in attn_fwd.*863\.5 us a call at stake", first, re.DOTALL)
    assert re.search(r"less than 200\.0 us\s+saw\s+1\.064 ms", first)
    assert page.locator("#verdict .card.untold").count() == len(verdict["cannot_tell"]) == 2
    assert "record_shapes=True" in page.inner_text("#verdict")
    assert page.locator("#verdict tbody tr").count() == len(verdict["held"]) == 1
    page.click("#s-1 .evidence")
    assert "7 events of the surprise about gpu_time marked" in page.inner_text("#tl-found")


def test_diff_shows_both_timelines_and_leads_to_evidence_that_is_gone(
    diff: str, visit: Callable[..., Any]
) -> None:
    seen = visit(diff.encode()).ready()
    page = seen.page
    assert "-91%" in page.inner_text("#scopes")
    names = page.locator("#tl-trace option").all_inner_texts()
    assert [name.split(":")[0] for name in names] == ["before", "after"]
    page.select_option("#tl-trace", index=1)
    page.wait_for_selector("#tl[data-ready]")
    page.click("#findings .evidence >> nth=0")
    page.locator("#tl-found", has_text="marked").wait_for()
    assert page.evaluate("document.getElementById('tl-trace').selectedIndex") == 0
    assert seen.misdeeds == []


def test_guess_has_the_amounts_of_its_json(guess: str, folder: Path, parse: type[Any]) -> None:
    report = told("guess", f"{folder / 'model.py'}:make", "--gpu", "h200", "--torch", "2.11")
    kernels = [value for _, value in parse(guess).column("Ops, all modules together", "kernels")]
    assert sum(kernels) == report["totals"]["kernels"] > 2


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_page_goes_to_a_pipe_and_not_over_a_terminal() -> None:
    import pty  # noqa: PLC0415  # not on Windows

    command = [sys.executable, "-m", "tracehunch", "look", str(SEEDS / "naive.json.gz"), "--format", "html"]
    reader, terminal = pty.openpty()
    refused = subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, text=True, check=False)
    os.close(terminal)
    os.close(reader)
    assert refused.returncode == 2
    assert "add -o report.html" in refused.stderr
    assert CliRunner().invoke(main, command[3:]).stdout.startswith("<!doctype html>")
