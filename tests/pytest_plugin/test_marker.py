from __future__ import annotations

HEAD = """
import pytest, torch, unittest
from model import attention, copying, falling_back, inputs
torch.cuda.is_available = lambda: False
"""


def test_claims_of_a_marker_hold_break_or_cannot_be_told(project):
    project.makepyfile(
        test_it=HEAD
        + """
@pytest.mark.tracehunch(sdpa="flash", leaf_ops="<= 20")
def test_holds():
    attention(*inputs())

@pytest.mark.tracehunch(sdpa="flash")
def test_breaks():
    falling_back(*inputs())

@pytest.mark.tracehunch(kernels=5, any_copies=0, **{"copies.dtod": 0})
def test_cannot_tell():
    attention(*inputs())

@pytest.mark.tracehunch(kernels=5, sdpa="flash")
def test_can_tell_one():
    attention(*inputs())

@pytest.mark.tracehunch(kernels=5)
def test_own_assert_counts():
    attention(*inputs())
    assert False, "mine"

@pytest.mark.tracehunch(sdpa="flash")
def test_uses_the_fixture(hunch):
    torch.zeros(3).clone()  # not profiled
    assert hunch(attention, *inputs()).ops["clone"] == 0

@pytest.mark.tracehunch(sdpa="flash")
def test_forgot_to_profile(hunch):
    attention(*inputs())

@pytest.mark.tracehunch("nowhere", sdpa="flash")
def test_scope_is_not_there():
    attention(*inputs())

@pytest.mark.tracehunch("inner", sdpa="flash")
def test_scope_inside():
    with torch.profiler.record_function("inner"):
        attention(*inputs())
    falling_back(*inputs())

@pytest.mark.tracehunch(sdpa="flash", confidence="low")
def test_not_sure():
    falling_back(*inputs())

@pytest.mark.tracehunch(sdpa="flash")
@pytest.mark.xfail(strict=True)
def test_expected_to_break():
    falling_back(*inputs())
"""
    )
    result = project.runpytest_inprocess("-rs", "-v")
    names = {line.split()[0].partition("::")[2]: line.split()[1] for line in result.outlines if "%]" in line}
    assert names == {
        "test_holds": "PASSED",
        "test_breaks": "FAILED",
        "test_cannot_tell": "SKIPPED",
        "test_can_tell_one": "PASSED",
        "test_own_assert_counts": "FAILED",
        "test_uses_the_fixture": "PASSED",
        "test_forgot_to_profile": "FAILED",
        "test_scope_is_not_there": "FAILED",
        "test_scope_inside": "PASSED",
        "test_not_sure": "PASSED",
        "test_expected_to_break": "XFAIL",
    }
    result.stdout.fnmatch_lines(
        [
            "sdpa.backend in test_breaks: guessed flash, saw math; explained by sdpa-math-fallback",
            "*tracehunch: test_breaks*",
            "*AssertionError: mine",
            "*the test profiled nothing; call hunch(function, ...)*",
            "*the trace has no scope 'nowhere'*",
            "*4 claims not checked; --tracehunch-strict makes that a failure",
            "  it ran on no GPU: any_copies, copies.dtod, kernels (4 claims)",
            "SKIPPED*it ran on no GPU*",
        ]
    )


def test_markers_of_classes_and_parameters_and_siblings(project):
    project.makepyfile(
        test_it=HEAD
        + """
pytestmark = pytest.mark.tracehunch(sdpa="math")

@pytest.mark.tracehunch(sdpa="flash")
class TestAttention:
    def test_of_the_class(self):
        attention(*inputs())

    @pytest.mark.tracehunch(sdpa="math")
    def test_of_its_own(self):
        falling_back(*inputs())

def test_of_the_module():
    falling_back(*inputs())

@pytest.mark.tracehunch(sdpa="flash")
class TestCase(unittest.TestCase):
    def test_holds(self):
        attention(*inputs())
    def test_breaks(self):
        falling_back(*inputs())

@pytest.mark.parametrize("run", [
    pytest.param(falling_back, id="math"),
    pytest.param(attention, marks=pytest.mark.tracehunch(sdpa="flash"), id="flash"),
    pytest.param(attention, id="wrong"),
])
def test_parameter(run):
    run(*inputs())
"""
    )
    result = project.runpytest_inprocess()
    result.assert_outcomes(passed=6, failed=2)
    result.stdout.fnmatch_lines(
        ["FAILED test_it.py::TestCase::test_breaks*", "FAILED *test_parameter?wrong?*"]
    )


def test_a_marker_that_cannot_be_understood_fails_the_setup(project):
    project.makepyfile(
        test_it=HEAD
        + """
@pytest.mark.tracehunch(kernls=5)
def test_key(): raise SystemExit

@pytest.mark.tracehunch(sdpa="flsh")
def test_word(): raise SystemExit

@pytest.mark.tracehunch(gpu_time=200)
def test_unit(): raise SystemExit

@pytest.mark.tracehunch(steps="many")
def test_option(): raise SystemExit

@pytest.mark.tracehunch(steps=0)
def test_no_call(): raise SystemExit

@pytest.mark.tracehunch(warmup=-1)
def test_less_than_none(): raise SystemExit

@pytest.mark.tracehunch(3, kernels=5)
def test_scope(): raise SystemExit

@pytest.mark.tracehunch(sdpa="flash", backend="flash")
def test_twice(): raise SystemExit
"""
    )
    result = project.runpytest_inprocess()
    result.assert_outcomes(errors=8)
    result.stdout.fnmatch_lines(
        [
            "*tracehunch: unknown key 'kernls'; did you mean kernels?",
            "*'flsh' is not known; did you mean flash?",
            "*gpu_time*200us*",
            "*steps = 'many' is no number of calls; write steps=3",
            "*steps = 0 is no number of calls; write steps=3",
            "*warmup = -1 is no number of calls; write warmup=3",
            "*3 is no scope; write*",
            "*claimed twice; keep one",
        ],
        consecutive=False,
    )


def test_how_to_record_is_said_by_the_marker(project):
    project.makepyfile(
        test_it=HEAD
        + """
@pytest.mark.tracehunch(steps=2, warmup=4, memory=True, shapes=False)
def test_calls(hunch):
    calls = []
    p = hunch(lambda: calls.append(attention(*inputs())))
    assert len(calls) == 4 + 2 + 2
    assert len(p.scope.scope.calls) == 2
    recorded = p.look.facts.tree.trace.header.recorded
    assert (recorded.shapes, recorded.memory) == (False, True)
"""
    )
    project.runpytest_inprocess().assert_outcomes(passed=1)


def test_another_profiler_is_told(project):
    project.makepyfile(
        test_it=HEAD
        + """
@pytest.fixture
def other():
    with torch.profiler.profile() as running:
        yield running

@pytest.mark.tracehunch(sdpa="flash")
def test_whole(other):
    attention(*inputs())
"""
    )
    result = project.runpytest_inprocess()
    assert "INTERNALERROR" not in result.stdout.str()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*profiler*"])


def test_a_fixture_of_the_same_name_does_not_let_a_marked_test_pass_unchecked(project):
    project.makepyfile(
        test_it=HEAD
        + """
@pytest.fixture
def hunch():
    return "mine"

def test_unmarked(hunch):
    assert hunch == "mine"

@pytest.mark.tracehunch(leaf_ops=999)
def test_marked():
    attention(*inputs())
"""
    )
    result = project.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*its fixture 'hunch' is not tracehunch's: rename it*"])
