from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from tracehunch.pytest_plugin._names import path_of, slug


def test_who_does_not_use_it_pays_nothing(tmp_path):
    (tmp_path / "test_it.py").write_text(
        """
import sys
def test_nothing_is_loaded():
    heavy = {"torch", "numpy", "msgspec", "rich", "click"} & set(sys.modules)
    ours = sorted(name for name in sys.modules if name.startswith("tracehunch"))
    assert not heavy
    assert ours == [
        "tracehunch", "tracehunch.pytest_plugin", "tracehunch.pytest_plugin._settings",
        "tracehunch.pytest_plugin._values",
    ]
"""
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tracehunch.pytest_plugin",
        "-p",
        "no:cacheprovider",
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.split("\n")[-2].startswith("1 passed")
    assert "= tracehunch =" not in done.stdout


def test_figures_stand_in_junit_and_with_v_at_the_end(project):
    project.makepyfile(
        test_it="""
from model import attention, inputs
def test_one(hunch, record_property):
    p = hunch(attention, *inputs())
    record_property("mine", p.facts["leaf_ops"])
def test_two():
    pass
"""
    )
    result = project.runpytest_inprocess("--junitxml=report.xml", "-v")
    result.stdout.fnmatch_lines(["test_it.py::test_one ?attention?: leaf ops 10, CPU *, SDPA flash"])
    cases = ET.parse(project.path / "report.xml").iter("testcase")  # noqa: S314  # made here
    found = {
        case.get("name"): {one.get("name"): one.get("value") for one in case.iter("property")}
        for case in cases
    }
    assert float(found["test_one"].pop("tracehunch.attention.cpu_time_us")) > 0
    assert found == {
        "test_one": {
            "mine": "10",
            "tracehunch.attention.leaf_ops": "10",
            "tracehunch.attention.sdpa.backend": "flash",
        },
        "test_two": {},
    }
    assert "= tracehunch =" not in project.runpytest_inprocess().stdout.str()


def test_everything_is_prefixed_and_told(project):
    told = project.runpytest_inprocess("--help").stdout.str()
    for option in ("save", "compare", "update", "times", "strict", "traces"):
        assert f"--tracehunch-{option}" in told
    assert "tracehunch_baselines" in told
    markers = project.runpytest_inprocess("--markers").stdout.str()
    assert "@pytest.mark.tracehunch(scope, **claims)" in markers
    fixtures = project.runpytest_inprocess("--fixtures").stdout.str()
    assert "hunch -- " in fixtures


@pytest.mark.parametrize(
    ("nodeid", "path"),
    [
        ("tests/test_model.py::test_fwd", "tests/test_model/test_fwd"),
        ("test_model.py::test_fwd[bf16-64]", "test_model/test_fwd-bf16-64-*"),
        ("test_model.py::TestA::test_fwd", "test_model/TestA.test_fwd-*"),
        ("../other/test_model.py::test_fwd", "up/other/test_model/test_fwd-*"),
        ("test_model.py::test_fwd[../../etc/passwd]", "test_model/test_fwd-..-..-etc-passwd-*"),
        ("test_model.py::test_fwd[" + "x" * 500 + "]", "test_model/test_fwd-" + "x" * 91 + "-*"),
        ("test_model.py::test_fwd[\ud800\n]", "test_model/test_fwd-*"),
    ],
)
def test_paths_are_safe(nodeid, path):
    found = path_of(nodeid)
    assert found.match(path)
    assert ".." not in found.parts
    assert not found.is_absolute()
    assert len(found.name) <= 109


def test_no_two_tests_share_a_path():
    nodeids = [
        "test_m.py::test_a", "test_m.py::test_A", "test_m.py::test_a[x]", "test_m.py::test_a[X]",
        "test_m.py::test_a[-x]", "test_m.py::test_a-x", "test_m.py::Test::test_a", "test m.py::test_a",
        "test-m.py::test_a", "test_m.py::test_a[" + "y" * 200 + "]", "test_m.py::test_a[" + "y" * 201 + "]",
    ]  # fmt: skip
    found = [str(path_of(nodeid)).lower() for nodeid in nodeids]
    found += [str(path_of("test_m.py::test_a", "x")).lower(), str(path_of("test_m.py::test_a[+x]")).lower()]
    assert len(set(found)) == len(found)


def test_devices_are_folders():
    assert slug("NVIDIA H200") == "nvidia-h200"
    assert slug("") == "unknown"
