"""Bounds of numbers that are not known, as optimizers take them."""

from __future__ import annotations

import pytest

from tracehunch.capture.program import record_call

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("bound", [max, min])
def test_a_bound_of_an_unknown_number_is_one_too(bound):
    taken = []

    def run() -> None:
        value = torch.randn(2, device="cuda").sum().item()
        best = __builtins__[bound.__name__](0.5, value) * 2
        taken.append(str(best))
        if best > 1:
            torch.zeros(1, device="cuda")

    (found,) = record_call(run).obstacles
    assert found.stops
    assert "decides by a number" in found.reason
    assert taken == ["unknown"]
    assert bound is __builtins__[bound.__name__]


def test_bounds_of_all_else_are_pythons():
    def run() -> None:
        assert (max(1, 2), min([3, 1]), max("ab", key=ord), min((), default=4)) == (2, 1, "b", 4)
        torch.zeros(1, device="cuda")

    assert not record_call(run).obstacles


@pytest.mark.parametrize("foreach", [True, False])
def test_an_optimizer_bounds_its_steps_by_norms(foreach):
    layer = torch.nn.Linear(8, 8)
    optimizer = torch.optim.Adafactor(layer.parameters(), foreach=foreach)

    def step() -> None:
        layer(torch.ones(2, 8, device="cuda")).sum().backward()
        optimizer.step()

    program = record_call(step, warmup=1)
    assert not program.obstacles
    norms = [one for one in program.calls if one.op == "aten::linalg_vector_norm"]
    assert len(norms) > 2
