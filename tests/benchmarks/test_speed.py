import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from speed_cases import OURS, Case
from speed_goals import exponent, goals
from speed_runs import Run, measured
from speed_table import Result, tables
from speed_traces import Wanted

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LARGEST = Wanted(500).words

PARENT = """
import subprocess, sys, time
code = "import sys, time; held = b'x' * 80_000_000; time.sleep(float(sys.argv[1]))"
child = subprocess.Popen([sys.executable, "-c", code, sys.argv[1]])
held = b"x" * 80_000_000
child.wait()
print('noise')
print('{"seconds": {"load": 1.5}, "failed": {"overlap": "KeyError"}}')
"""
MEASURES = """
import json, sys
sys.path.insert(0, sys.argv[1])
from speed_runs import measured
run = measured([sys.executable, "-c", *sys.argv[2:]], 600)
print(json.dumps([run.problem, run.peak_bytes, run.stages, run.failed]))
"""
ENDLESS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, file=open(sys.argv[1], "w"), flush=True)
time.sleep(600)
"""


def result(seconds, *, what=LARGEST, program=OURS, part="look", peak=5e8, **more):
    return Result(Case(part, what, program, ()), (Run(seconds, seconds, int(peak), **more),))


@pytest.mark.skipif(sys.platform != "linux", reason="memory of several processes is read from /proc")
def test_memory_is_that_of_the_whole_tree_and_stages_are_what_the_driver_said():
    # a process of its own measures: a child begins with its parent's peak
    command = [sys.executable, "-c", MEASURES, str(BENCHMARKS), PARENT]
    for held_s in ("0.6", "6", "60"):  # memory is sampled: on a busy machine seldom
        said = subprocess.run([*command, held_s], check=True, capture_output=True, text=True).stdout
        problem, peak_bytes, stages, failed = json.loads(said)
        if peak_bytes > 160e6:
            break
    assert problem == ""
    assert 160e6 < peak_bytes < 300e6
    assert stages == {"load": 1.5}
    assert failed == {"overlap": "KeyError"}


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path):
    for limit_s in (1.5, 15, 150):  # a busy machine takes seconds to start what is to be ended
        run = measured([sys.executable, "-c", ENDLESS, str(tmp_path / "pid")], limit_s)
        assert run.late
        assert run.problem
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            break
    child = int((tmp_path / "pid").read_text())
    for _ in range(1200):
        if not alive(child):
            break
        time.sleep(0.05)
    assert not alive(child)


def alive(pid):
    """Whether it runs; whoever took it over may not have heard of its end yet."""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_what_fails_says_why():
    run = measured([sys.executable, "-c", "raise ValueError('no such thing in /some/where/else')"], 600)
    assert run.problem == "exit 1: ValueError: no such thing in ..."
    assert not run.late


def test_growth_is_told_by_its_power():
    assert exponent([(1, 3), (10, 30), (50, 150)]) == pytest.approx(1)
    assert exponent([(1, 3), (10, 300), (50, 7500)]) == pytest.approx(2)


def test_goals_are_reached_missed_or_not_measured():
    found = goals(
        [result(4.0, peak=1.2e9), result(41.0, program="hta"), result(30.0, program="tracelens")], {}
    )
    said = {goal.words.partition(" takes")[0]: goal for goal in found}
    assert [goal.reached for goal in found[:4]] == [True, False, True, False]
    assert said["`tracehunch --help`"].reached is None


def test_a_peer_whose_time_ran_out_is_slower_than_that():
    late = result(300.0, program="hta", problem="over 300 s", late=True)
    hta = goals([result(5.0), late], {})[2]
    assert (hta.seen, hta.reached) == ("over 60.0 times", True)
    assert "| 5.00 s, 500 MB | over 300 s |" in tables([result(5.0), late])


def test_doubling_sizes_that_take_four_times_as_long_are_not_linear():
    sizes = {Wanted(size).words: size for size in (10, 100, 500)}
    for power, reached in ((1.0, True), (1.3, False)):
        rows = [result(0.01 * size**power, what=Wanted(size).words) for size in (10, 100, 500)]
        assert goals(rows, sizes)[4].reached is reached


def test_stages_that_failed_are_told_below_the_table():
    other = Wanted(10).words
    broken = [
        result(3.0, program="hta", failed={"overlap": "KeyError"}),
        result(1.0, what=other, program="hta"),
    ]
    text = tables([result(2.0), *broken])
    assert "3.00 s (1.5x), 500 MB †" in text
    assert f"HTA failed in its overlap (`KeyError`), and the rest is timed: {LARGEST}." in text
    assert "and the rest is timed: everywhere." in tables([result(2.0), broken[0]])
