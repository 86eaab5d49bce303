from __future__ import annotations

import re

import pytest
from click.testing import CliRunner, Result

from tracehunch.checks import pages
from tracehunch.cli import main
from tracehunch.facts.vocabulary import KEYS


def explain(*words: str) -> Result:
    return CliRunner().invoke(main, ["explain", *words])


def test_a_kernel_is_decoded_field_by_field() -> None:
    result = explain("nvjet_sm90_tst_64x512_64x2_1x2_h_bz_coopB_NNT")
    assert result.exit_code == 0
    said = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in result.stdout.splitlines()[1:-1])
    assert said["library"] == "cublas"
    assert said["math unit"] == "tensor cores"
    assert said["tile"] == "64x512"


def test_a_name_that_a_shell_split_is_put_together() -> None:
    assert "device to device" in explain("Memcpy", "DtoD", "(Device", "->", "Device)").stdout


@pytest.mark.parametrize("finding", sorted(pages()))
def test_every_finding_has_its_page(finding: str) -> None:
    result = explain(finding)
    assert result.exit_code == 0
    assert finding in result.stdout
    assert len(result.stdout.splitlines()) > 5


@pytest.mark.parametrize("key", sorted(KEYS))
def test_every_fact_has_its_meaning(key: str) -> None:
    result = explain(key)
    assert result.exit_code == 0
    assert KEYS[key].meaning in result.stdout


def test_a_fact_by_its_name_in_json() -> None:
    assert explain("gpu_time_us").stdout == explain("gpu_time").stdout


def test_an_unknown_kernel_says_that_no_rule_knows_it() -> None:
    result = explain("my_own::kernel<int>(float*)")
    assert result.exit_code == 0
    assert "unclassified" in result.stdout


@pytest.mark.parametrize(
    ("word", "meant"), [("hidden_copy", "hidden-copy"), ("kernel", "kernels"), ("gpu-time", "gpu_time")]
)
def test_a_misspelt_word_is_told_with_what_was_meant(word: str, meant: str) -> None:
    result = explain(word)
    assert result.exit_code == 2
    assert f"did you mean {meant}?" in result.stderr


def test_nothing_close_is_told_with_what_there_is() -> None:
    result = explain("xyzzy")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there are " in result.stderr


def test_hostile_names_are_shown_harmless() -> None:
    result = explain("k\x1b[31m<int>")
    assert "\x1b" not in result.output
