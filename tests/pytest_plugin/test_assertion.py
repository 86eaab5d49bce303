from __future__ import annotations

from pathlib import Path

from tracehunch.pytest_plugin._assertion import explained
from tracehunch.pytest_plugin._profiled import Profiled

FAILING = """
from model import attention, copying, falling_back, inputs

def test_count(hunch):
    assert hunch(copying, *inputs()).facts["leaf_ops"] == 10

def test_other_way_round(hunch):
    assert 10 >= hunch(copying, *inputs()).facts["leaf_ops"]

def test_backend(hunch):
    assert hunch(falling_back, *inputs()).facts["sdpa.backend"] == "flash"

def test_not(hunch):
    assert hunch(falling_back, *inputs()).facts["sdpa.backend"] != "math"

def test_one_of(hunch):
    assert hunch(falling_back, *inputs()).facts["sdpa.backend"] in ("flash", "cudnn")

def test_time(hunch):
    assert hunch(attention, *inputs()).facts["cpu_time"] < 0.001

def test_op(hunch):
    p = hunch(copying, *inputs())
    assert p.facts["sdpa.backend"] == "flash" and p.ops["copy_"] == 0
"""


def test_a_broken_assertion_says_what_was_seen_and_why(project):
    project.makepyfile(test_it=FAILING)
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=7)
    result.stdout.fnmatch_lines(
        [
            "E* assert 14 == 10  (leaf_ops in copying)",
            "E* guessed 10, saw 14 per call; *explained*",
            "E* 10x  in aten::scaled_dot_product_attention",
            "E* 2x  in aten::contiguous",
            "*tracehunch: copying*",
            "E* assert 10 >= 14  (leaf_ops in copying)",
            "E* guessed at most 10, saw 14 per call; *explained*",
            "E* assert 'math' == 'flash'  (sdpa.backend in falling_back)",
            "E* guessed flash, saw math per call; explained by sdpa-math-fallback",
            "E* sdpa-math-fallback: SDPA ran its math fallback*",
            "E* assert 'math' != 'math'  (sdpa.backend in falling_back)",
            "E* sdpa-math-fallback: SDPA ran its math fallback*",
            "E* assert 'math' in ('flash', 'cudnn')  (sdpa.backend in falling_back)",
            "E* sdpa-math-fallback: SDPA ran its math fallback*",
            "E* assert * < 0.001  (cpu_time in attention)",
            "E* guessed less than *, saw * per call; unexplained: no finding tells why",
            "E* 1 == 0  (calls of aten::copy_ in copying)*",
            "E* 1x  aten::contiguous > aten::clone > aten::copy_*",
        ]
    )
    assert "'flash' == 'flash'  (" not in result.stdout.str()  # what holds needs no explanation


def test_the_report_of_a_failed_test_has_the_verdict_and_where_the_trace_is(project):
    project.makepyfile(
        test_it="""
from model import copying, inputs

def test_claims(hunch):
    hunch(copying, *inputs()).check(sdpa="math", leaf_ops=3)
"""
    )
    result = project.runpytest_inprocess()
    result.stdout.fnmatch_lines(
        [
            "E* Failed: leaf_ops in copying: guessed 3, saw 14; *explained*",
            "E* sdpa.backend in copying: guessed math, saw flash*",
            "*tracehunch: copying*",
            "*test_claims.json.gz",
            "Verdict  0 held, 2 surprises*, 0 cannot tell",
            "Ops in copying*",
            "FAILED test_it.py::test_claims*",
        ]
    )
    (trace,) = (line for line in result.outlines if line.endswith("test_claims.json.gz"))
    assert Path(trace).is_file()


def test_a_comparison_with_something_else_is_no_error(project):
    project.makepyfile(
        test_it="""
from model import attention, inputs

def test_none(hunch):
    assert hunch(attention, *inputs()).facts["leaf_ops"] == None

def test_text(hunch):
    assert hunch(attention, *inputs()).facts["leaf_ops"] == "ten"

def test_list(hunch):
    assert hunch(attention, *inputs()).facts["dominant"] == ["aten::mm"]

def test_two_facts(hunch):
    p = hunch(attention, *inputs())
    assert p.facts["leaf_ops"] == p.ops["transpose"]
"""
    )
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=4)
    assert "INTERNALERROR" not in result.stdout.str()
    result.stdout.fnmatch_lines(
        ["E* assert 10 == None  (leaf_ops in attention)", "E* assert 10 == 6  (leaf_ops*"]
    )


def test_on_a_gpu_it_lists_what_was_counted(h200):
    profile = Profiled("attn_fwd", h200 / "seeds" / "naive.json.gz", strict=False)
    profile.finished()
    assert explained("==", profile.facts["copies"], 0, verbosity=0) == [
        "1 == 0  (copies in attn_fwd)",
        "guessed 0, saw 1 per call; explained by hidden-copy",
        "hidden-copy: aten::masked_fill hides 1 copy a call, 127.6 us (12% of the scope's GPU time)",
        "1x    126.9 us  aten::copy_  memcpy",
    ]
    assert explained("==", profile.facts["kernels"], 5, verbosity=0) == ["5 == 5"]
    kernels = explained("<", profile.facts["kernels"], 5, verbosity=2)
    assert len([line for line in kernels if " us  " in line]) == 5
    short = explained("<", profile.facts["gpu_time"], 1, verbosity=0)
    assert len(short) <= 8
    assert sum(map(len, short)) < 640
