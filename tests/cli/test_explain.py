from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tracehunch
from tracehunch.checks import pages
from tracehunch.cli import main
from tracehunch.cli.glossary import glossary
from tracehunch.compare.critical import Kind
from tracehunch.facts.vocabulary import KEYS
from tracehunch.judge import examine
from tracehunch.report import (
    attention_terminal,
    critical_terminal,
    markdown,
    over_time_facts,
    ranks_text,
    ranks_text_together,
    table,
    terminal,
)
from tracehunch.report.layout import View
from tracehunch.trace import read

DATA = Path(__file__).parents[1] / "data"


RANKS = [
    "straggler",
    "skew",
    "bus bandwidth",
    "exposed",
    "overlapped",
    "clock offset",
    "process group",
    "world_size",
    "made_wait_us",
]


OVER_TIME = [
    "over time",
    "cycles",
    "tested",
    "constant",
    "warm-up",
    "one-offs",
    "varies",
    "too few",
    "from -> to",
    "seen in",
    "trend",
    "turns",
    "left-out",
    "not read",
    *over_time_facts._SAID.values(),
]


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


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("bound", "ridge"),
        ("flops", "a multiply and an add as two"),
        ("hbm_bytes", "each result written once"),
        ("achieved_flops", "percent of peak"),
    ],
)
def test_facts_about_work_say_how_they_are_counted(key: str, said: str) -> None:
    page = explain(key).stdout
    assert said in " ".join(page.split())
    assert "record with  record_shapes=True" in page
    assert all(len(line) <= 80 for line in page.splitlines())


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


def test_nothing_close_is_told_with_where_all_are_listed() -> None:
    result = explain("xyzzy")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "tracehunch explain lists the words there are" in result.stderr


def test_without_a_name_all_words_are_listed_in_columns() -> None:
    result = explain()
    assert result.exit_code == 0
    listed = {word for line in result.stdout.splitlines() for word in re.split(r"\s{2,}", line.strip())}
    assert listed >= {*pages(), *KEYS}
    others = listed - {*pages(), *KEYS} - {"", "Findings", "Facts", "Other words"}
    assert {word.lower() for word in others if not word.startswith("Also the")} <= set(glossary())
    assert len(others) > 100
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_hostile_names_are_shown_harmless() -> None:
    result = explain("k\x1b[31m<int>")
    assert "\x1b" not in result.output


# the other words that are printed


def notice_codes() -> set[str]:
    """Every code that the source gives a notice, found in its syntax."""
    codes = set()
    for path in Path(tracehunch.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                code = node.args[0]
                if called in ("Notice", "say", "Wording") and isinstance(code, ast.Constant):
                    codes.add(str(code.value))
    return codes


def column_heads() -> set[str]:
    """Every heading of a column in the reports."""
    look = examine(read(DATA / "h200" / "seeds" / "naive.json.gz"))
    heads = [
        column.heading
        for view in (View(width=80), View(width=160))
        for gpu in (True, False)
        for column, _ in terminal._scope_columns(view, gpu=gpu)
    ]
    heads += [column.heading for column in terminal._WIDE_KERNEL_COLUMNS]
    heads += [
        column.heading for column in (*attention_terminal._GPU_COLUMNS, *attention_terminal._CPU_COLUMNS)
    ]
    heads += ["self", "total", "op", "what changed", "what the trace revealed"]
    heads += [head.removeprefix("<") for head, _ in (*markdown._SCOPE_COLUMNS, *markdown._CPU_SCOPE_COLUMNS)]
    heads += [head.removeprefix("<") for head, _ in (*markdown._KERNEL_COLUMNS, *markdown._OP_COLUMNS)]
    for columns in (critical_terminal._KINDS, critical_terminal._LONGEST, critical_terminal._WHAT_IFS):
        heads += [column.heading for column in columns]
    heads += [head for head, *_ in ranks_text._RANK]
    heads += [column.heading for column, _, _, _ in ranks_text_together._COLLECTIVE]
    heads += [column.heading for column in ranks_text_together.OTHER_COLUMNS if column.heading]
    first = table.render(look.facts.tree).splitlines()[0]
    return {*heads, *re.split(r"\s{2,}", first.strip())}


@pytest.mark.parametrize("code", sorted(notice_codes()))
def test_every_notice_is_explained(code: str) -> None:
    result = explain(code)
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.splitlines()) > 1


@pytest.mark.parametrize("head", sorted(column_heads()))
def test_every_column_is_explained(head: str) -> None:
    result = explain(*head.split())
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout.splitlines()) > 1


@pytest.mark.parametrize(
    "word",
    [
        "whole",
        "ProfilerStep",
        "framework",
        "at stake",
        "sealed",
        "leaf op",
        "bookkeeping",
        "cannot tell",
        "critical path",
        "what if",
        "between ops",
        *(kind.value for kind in Kind if kind != Kind.KERNEL),
        *RANKS,
        *OVER_TIME,
    ],
)
def test_words_of_reports_are_explained(word: str) -> None:
    assert explain(word).exit_code == 0


def test_pages_fit_80_columns_and_point_only_to_pages_there_are() -> None:
    for page in glossary().values():
        assert max(len(line) for line in page.splitlines()) <= 80
        for word in page.partition("see also: ")[2].split(", ") if "see also: " in page else ():
            assert explain(*word.split()).exit_code == 0, word


def test_an_op_is_said_to_be_one() -> None:
    result = explain("aten::mm")
    assert result.exit_code == 0
    assert "An op" in result.stdout
    assert "not a kernel" in result.stdout
    assert "tracehunch look TRACE" in result.stdout


def test_several_names_are_each_explained() -> None:
    result = explain("idle", "hidden-copy", "kernels", "aten::mm")
    assert result.exit_code == 0
    assert result.stdout.count("\n\n") >= 3
    for word in ("idle\n", "hidden-copy", "kernels\n", "aten::mm\n"):
        assert word in result.stdout
    assert "[NAME]..." in CliRunner().invoke(main, ["explain", "--help"]).stdout


def test_of_several_names_an_unknown_one_is_an_error() -> None:
    result = explain("idle", "nosuchword")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "nosuchword" in result.stderr
