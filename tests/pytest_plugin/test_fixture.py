from __future__ import annotations

import json
import pickle

import pytest

from tracehunch.pytest_plugin._values import FactFloat, FactInt, FactText, FactTexts, plain

PASSING = """
from model import attention, copying, inputs

def test_function(hunch):
    given = inputs()
    p = hunch(attention, *given)
    assert p.result.shape == given[0].shape
    assert p.label == "attention"
    assert p.scope.scope.calls.__len__() == 3
    assert p.facts["sdpa.backend"] == p.facts["sdpa"] == "flash"
    assert p.facts["leaf_ops"] > 0 and p.facts["cpu_time"] == p.facts["cpu_time_us"] > 0
    assert p.ops["copy_"] == p.ops["aten::copy_"] == 0
    assert p.ops["transpose"] == 6
    assert "kernels" not in p.facts and p.facts.get("kernels") is None and p.facts.get("kernels", 3) == 3
    assert "cpu_time_us" in list(p.facts)
    assert p.verdict.held == ()

def test_keywords(hunch):
    query, key, value = inputs()
    assert hunch(attention, query, value=value, key=key).facts["sdpa"] == "flash"

def test_block(hunch):
    with hunch("mine") as p:
        copying(*inputs())
    assert len(p.scope.scope.calls) == 1
    assert p.ops["contiguous"] == 1 and p.ops["copy_"] == 1

def test_two(hunch):
    assert hunch(attention, *inputs()).label == "attention"
    assert hunch(attention, *inputs()).label == "attention 2"
    assert hunch(lambda: attention(*inputs())).label == "test_two"

def test_check(hunch):
    p = hunch(attention, *inputs()).check(sdpa="flash", leaf_ops="> 0")
    assert {one.claim.key for one in p.verdict.held} == {"sdpa.backend", "leaf_ops"}

def test_error_goes_on(hunch):
    import pytest
    with pytest.raises(ZeroDivisionError):
        hunch(lambda: 1 / 0)
    assert hunch(attention, *inputs()).facts["sdpa"] == "flash"

def test_plain():
    pass
"""


def test_a_profile_shows_what_ran(project):
    project.makepyfile(test_it=PASSING)
    project.runpytest_inprocess().assert_outcomes(passed=7)


def test_what_is_asked_wrongly_says_what_to_write(project):
    project.makepyfile(
        test_it="""
from model import attention, inputs

def test_key(hunch):
    hunch(attention, *inputs()).facts["kernls"]

def test_claim(hunch):
    hunch(attention, *inputs()).check(kernls=5)

def test_too_early(hunch):
    with hunch("mine") as p:
        p.facts["leaf_ops"]

def test_label_with_arguments(hunch):
    hunch("mine", 3)

def test_no_function(hunch):
    hunch(3)
"""
    )
    result = project.runpytest_inprocess("--tb=line")
    result.assert_outcomes(failed=5)
    result.stdout.fnmatch_lines(
        [
            "*unknown key 'kernls'; did you mean kernels?",
            "*unknown key 'kernls'; did you mean kernels?",
            "*mine is not profiled yet*look at it after the with block",
            "*takes a label only*",
            "*3 cannot be called*",
        ]
    )


def test_a_claim_about_a_gpu_is_skipped_without_one_and_fails_if_strict(project):
    project.makepyfile(
        test_it="""
import torch
from model import attention, inputs
torch.cuda.is_available = lambda: False

def test_fact(hunch):
    assert hunch(attention, *inputs()).facts["kernels"] == 5

def test_claims(hunch):
    hunch(attention, *inputs()).check(kernels=5, any_copies=0)

def test_one_can_be_told(hunch):
    hunch(attention, *inputs()).check(kernels=5, sdpa="flash")

def test_broken(hunch):
    hunch(attention, *inputs()).check(kernels=5, sdpa="math")
"""
    )
    result = project.runpytest_inprocess("-rs")
    result.assert_outcomes(skipped=2, passed=1, failed=1)
    result.stdout.fnmatch_lines(["*cannot tell kernels in attention: it ran on no GPU*"])
    project.runpytest_inprocess("--tracehunch-strict").assert_outcomes(failed=4)


def test_what_cannot_be_profiled_is_told_where_the_test_asked_for_it(project):
    project.makepyfile(
        test_it="""
import pytest
import torch

@pytest.fixture
def nested(hunch):
    with hunch("a"):
        with hunch("b"):
            pass

def test_set_up(nested):
    pass

def test_call(hunch):
    with hunch("a"):
        hunch(torch.ones, 3)

@pytest.mark.tracehunch(leaf_ops=1)
def test_own():
    with torch.profiler.profile():
        torch.ones(3)
"""
    )
    result = project.runpytest_inprocess()
    result.assert_outcomes(errors=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "test_it.py:7: CaptureError",
            "test_it.py:15: CaptureError",
            "the code could not be profiled: there is no trace: another profiler was started while it ran*",
        ]
    )
    assert "/tracehunch/" not in result.stdout.str().replace(str(project.path), "")


def test_traces_are_kept_where_asked_for(project):
    project.makepyfile(
        test_it="""
from model import attention, inputs

def test_one(hunch):
    hunch(attention, *inputs())
    assert hunch(attention, *inputs()).trace_path.exists()
"""
    )
    project.runpytest_inprocess("--tracehunch-traces", "kept").assert_outcomes(passed=1)
    kept = {path.relative_to(project.path).as_posix() for path in project.path.rglob("*.json.gz")}
    assert kept == {"kept/test_it/test_one.json.gz", _only(kept, "attention-2")}


def _only(names, part):
    (found,) = (name for name in names if part in name)
    return found


@pytest.mark.parametrize(
    "value", [FactInt(5), FactFloat(2.5), FactText("flash"), FactTexts(("aten::mm", "aten::add"))]
)
def test_values_are_what_they_look_like(value):
    assert type(plain(value)) in (int, float, str, tuple)
    assert plain(value) == value
    assert hash(plain(value)) == hash(value)
    copied = pickle.loads(pickle.dumps(value))  # noqa: S301  # made here
    assert type(copied) is type(plain(value))
    assert copied == value
    assert json.dumps(value) == json.dumps(plain(value))
