from __future__ import annotations

import tomllib

import pytest

TESTS = """
import pytest
from model import attention, inputs

@pytest.mark.parametrize("n", [1, 2], ids=["a/b", "../c"])
def test_calls(hunch, n):
    hunch(attention, *inputs())

@pytest.mark.tracehunch(sdpa="flash")
def test_whole():
    attention(*inputs())

def test_other():
    pass
"""


@pytest.fixture
def saved(project):
    project.makepyfile(test_it=TESTS)
    result = project.runpytest_inprocess("--tracehunch-save")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["baselines in .tracehunch: 3 saved"])
    return project


def _files(project):
    folder = project.path / ".tracehunch"
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def _change(project):
    """Make the model copy: what a baseline must notice."""
    model = project.path / "model.py"
    before, after = "(query, key, value, is_causal", "(query, key.clone(), value, is_causal"
    model.write_text(model.read_text().replace(before, after))


def test_one_file_a_test_that_can_be_read_and_checked(saved):
    files = _files(saved)
    assert len(files) == 3
    assert all(name.startswith("cpu/test_it/test_") and name.endswith(".toml") for name in files)
    document = tomllib.loads(files["cpu/test_it/test_whole.toml"].read_text())
    assert document["hunch"]["context"]["test"] == "test_it.py::test_whole"
    assert document["guess"] == [
        {"scope": "test_whole", "leaf_ops": 16, "sdpa": {"backend": "flash"}, "dtype": "fp32"}
    ]


def test_what_is_the_same_holds(saved):
    before = {name: path.read_bytes() for name, path in _files(saved).items()}
    result = saved.runpytest_inprocess("--tracehunch-compare", "--tracehunch-strict")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["baselines in .tracehunch: 3 held"])
    saved.runpytest_inprocess("--tracehunch-update").assert_outcomes(passed=4)
    assert {name: path.read_bytes() for name, path in _files(saved).items()} == before


def test_what_differs_fails_until_it_is_accepted(saved):
    _change(saved)
    saved.runpytest_inprocess().assert_outcomes(passed=4)
    result = saved.runpytest_inprocess("--tracehunch-compare")
    result.assert_outcomes(failed=3, passed=1)
    result.stdout.fnmatch_lines(
        [
            "leaf_ops in test_whole: guessed 16 (baseline), saw *",
            "baseline: .tracehunch/cpu/test_it/test_whole.toml; --tracehunch-update accepts what it *",
            "*tracehunch: test_whole*",
            "baselines in .tracehunch: 3 broken",
        ]
    )
    result = saved.runpytest_inprocess("--tracehunch-update")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["baselines in .tracehunch: 3 updated"])
    saved.runpytest_inprocess("--tracehunch-compare").assert_outcomes(passed=4)


def test_missing_and_stale_ones_are_said(saved):
    source = saved.path / "test_it.py"
    more = "\n@pytest.fixture\ndef none(): assert 0\ndef test_is_not_set_up(none): pass\n"
    source.write_text("import pytest\n" + source.read_text().replace("test_whole", "test_renamed") + more)
    result = saved.runpytest_inprocess("--tracehunch-compare")
    result.assert_outcomes(passed=4, errors=1)
    result.stdout.fnmatch_lines(
        [
            "baselines in .tracehunch: 2 held",
            "  1 profile without a baseline: not compared; --tracehunch-update writes what is missing",
            "    test_it.py::test_renamed (.tracehunch/cpu/test_it/test_renamed.toml)",
            "  1 baseline of tests that are gone; delete what is not needed:",
            "    cpu/test_it/test_whole.toml (test_it.py::test_whole)",
        ]
    )
    saved.runpytest_inprocess("--tracehunch-compare", "--tracehunch-strict").assert_outcomes(
        passed=3, failed=1, errors=1
    )


@pytest.mark.parametrize("chosen", [("-k", "calls"), ("test_it.py::test_whole",), ("-m", "tracehunch")])
def test_a_test_that_was_not_asked_for_is_not_stale(saved, chosen):
    result = saved.runpytest_inprocess("--tracehunch-compare", *chosen)
    assert "gone" not in result.stdout.str()
    result.stdout.fnmatch_lines(["baselines in .tracehunch: * held"])


def test_a_baseline_that_cannot_be_read_is_named_and_can_be_replaced(saved):
    path = saved.path / ".tracehunch/cpu/test_it/test_whole.toml"
    path.write_text("[[guess]")
    result = saved.runpytest_inprocess("--tracehunch-compare")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*test_whole.toml is not TOML*",
            "baseline: *test_whole.toml; --tracehunch-update accepts what it shows now",
            "baselines in .tracehunch: 2 held, 1 broken",
        ]
    )
    saved.runpytest_inprocess("--tracehunch-update").assert_outcomes(passed=4)
    assert tomllib.loads(path.read_text())["guess"]


def test_the_folder_is_an_ini_key_and_several_profiles_have_a_file_each(project):
    project.makeini("[pytest]\npythonpath = .\ntracehunch_baselines = tests/expected")
    project.makepyfile(
        test_it="""
from model import attention, copying, inputs
def test_two(hunch):
    hunch(attention, *inputs())
    hunch(copying, *inputs())
    with hunch("nothing"):
        pass
"""
    )
    result = project.runpytest_inprocess("--tracehunch-save")
    result.stdout.fnmatch_lines(
        ["baselines in tests/expected: 2 saved", "  1 profile without any op: nothing to save"]
    )
    names = {path.name for path in (project.path / "tests/expected/cpu/test_it").iterdir()}
    assert names == {"test_two.toml", "test_two+copying.toml"}
    project.runpytest_inprocess("--tracehunch-compare", "--tracehunch-strict").assert_outcomes(passed=1)


def test_modes_exclude_each_other(project):
    result = project.runpytest_inprocess("--tracehunch-save", "--tracehunch-compare")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--tracehunch-save and --tracehunch-compare: choose one*"])


def test_workers_write_and_compare_the_same_files(project):
    project.makepyfile(test_it=TESTS)
    result = project.runpytest_subprocess("--tracehunch-save", "-n2", "--junitxml=report.xml", "-v")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_whole ?test_whole?: leaf ops 16, CPU *, SDPA flash",
            "baselines in .tracehunch: 3 saved",
        ]
    )
    assert len(_files(project)) == 3
    report = (project.path / "report.xml").read_text()
    assert report.count('name="tracehunch.attention.leaf_ops" value="10"') == 2
    project.runpytest_inprocess("--tracehunch-compare").assert_outcomes(passed=4)
