"""What-ifs of random programs against what the same programs take with other times."""

from __future__ import annotations

import pytest
from tests.compare.critical.made import Made, after
from tests.compare.critical.programs import WHAT_IF, Factors, Instruction, Machine, program

LAST: list[Instruction] = [("wait", (7,)), ("wait", (20,)), ("wait", (24,)), ("op", (12,))]


def single(instructions: list[Instruction], factors: Factors, made: Made | None = None) -> float:
    return Machine(factors, made).step([*instructions, *LAST], 1)


def ends(instructions: list[Instruction], factors: Factors, made: Made | None = None) -> list[float]:
    machine = Machine(factors, made)
    return [machine.step(instructions, number + 1) for number in range(9)]


@pytest.mark.parametrize("seed", range(12))
def test_one_step(seed):
    made, instructions = Made(), program(seed, waits=True)
    took = single(instructions, Factors(), made)
    path = made.path()
    assert path.length_ns == pytest.approx(1e3 * took)
    assert path.residual_ns == 0
    told = after(path)
    for name, factors in WHAT_IF.items():
        if name in told:
            assert told[name] == pytest.approx(single(instructions, factors), abs=0.02 * took), name


@pytest.mark.parametrize("seed", range(12))
def test_a_step_among_others_is_what_each_takes_in_the_long_run(seed):
    made, instructions = Made(), program(seed, waits=seed % 3 == 0)
    found = ends(instructions, Factors(), made)
    took = (found[6] - found[3]) / 3
    path = made.path("ProfilerStep#5")
    assert path.length_ns == pytest.approx(1e3 * took)
    told = after(path)
    for name, factors in WHAT_IF.items():
        if name in told:
            other = ends(instructions, factors)
            assert told[name] == pytest.approx((other[6] - other[3]) / 3, abs=0.06 * took), name


@pytest.mark.parametrize("seed", range(6))
def test_waits_of_calls_are_found_without_what_the_profiler_records_of_them(seed):
    made, instructions = Made(), program(seed, waits=True)
    took = Machine(Factors(), made, events_recorded=False).step([*instructions, *LAST], 1)
    told = after(made.path())
    assert told["gpu"] == pytest.approx(single(instructions, WHAT_IF["gpu"]), abs=0.05 * took)
