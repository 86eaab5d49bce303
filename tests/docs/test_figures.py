"""The H200 figures of docs/attention/ are those of the recordings that ship with the package."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from tracehunch.cli import main

FOLDER = Path(__file__).parents[2] / "docs" / "attention"
PAGES = {
    "naive": "naive",
    "naive-inplace": "naive_inplace",
    "math": "sdpa_math",
    "efficient": "sdpa_efficient",
    "flash": "sdpa_flash",
    "cudnn": "sdpa_cudnn",
    "auto": "sdpa_auto",
}


@cache
def facts():
    """Return variant -> facts of one forward."""
    shown = CliRunner().invoke(main, ["attention", "--device", "recorded", "--format", "json"]).stdout
    variants = json.loads(shown)["attention"]["variants"]
    return {
        one["name"]: next(s["facts"] for s in one["look"]["scopes"] if s["name"] == one["label"])
        for one in variants
    }


def page(name):
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def us(value):
    return f"{value:,.1f} us"


def test_the_overview_has_all_variants_as_recorded():
    rows = re.findall(r"^\| \[[^]]+\]\(([\w-]+)\.md\) \|(.*)\|$", page("index"), re.MULTILINE)
    assert [name for name, _ in rows] == list(PAGES)
    for name, row in rows:
        seen, cells = facts()[PAGES[name]], [cell.strip() for cell in row.split("|")]
        assert cells[0] == f"{seen['kernels']} + {seen['copies']}"
        assert (cells[2], cells[4]) == (us(seen["gpu_time_us"]), us(seen["cpu_time_us"]))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_variant_as_recorded(name):
    seen, text = facts()[PAGES[name]], page(name)
    rows = dict(re.findall(r"^\| ([\w, ]+) \|[^|]*\| ([^|]+?) \|", text, re.MULTILINE))
    assert rows["kernels"] == str(seen["kernels"])
    assert rows["GPU time"] == us(seen["gpu_time_us"])
    if "CPU time" in rows:
        assert rows["CPU time"] == us(seen["cpu_time_us"])
    if "occupancy" in rows:
        assert rows["occupancy"].startswith(f"{seen['occupancy']:g} %")
    copies, memsets = rows.get("copies", "0"), rows.get("memsets", rows.get("copies, memsets", "0")[-1])
    assert (copies, memsets) == (str(seen["copies"]), str(seen["memsets"]))


def test_the_shares_of_naive_are_those_of_its_kernels():
    rows = re.findall(r"^\| ([\d.]+) % \| ([\d.]+) us \|", page("naive"), re.MULTILINE)
    total = facts()["naive"]["gpu_time_us"]
    assert len(rows) == 6
    for share, time in rows:
        assert float(share) == pytest.approx(100 * float(time) / total, abs=0.5)
    assert sum(float(time) for _, time in rows) == pytest.approx(total, abs=1)
