"""CTC's loss, whose lengths C++ reads on the host: what is recorded is what a CPU runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tracehunch.capture.program import record_call

torch = pytest.importorskip("torch")

STEPS, ROWS, CLASSES = 10, 2, 6
SAME = ("clamp_min", "div", "mean", "_ctc_loss", "_ctc_loss_backward", "where", "_log_softmax")


def step(lengths: Any, device: str = "cuda", **options: Any) -> Any:
    def run() -> None:
        scores = torch.randn(STEPS, ROWS, CLASSES, device=device, requires_grad=True)
        targets = torch.randint(1, CLASSES, (ROWS, 4), device=device)
        found = torch.nn.functional.ctc_loss(scores.log_softmax(2), targets, *lengths(), **options)
        found.sum().backward()

    return run


def on_cpu(run: Any) -> Counter[str]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        run()
    outer = [one for one in seen.events() if one.cpu_parent is None or one.cpu_parent.name != one.name]
    return Counter(one.name.removeprefix("aten::") for one in outer)


@pytest.mark.parametrize("options", [{}, {"reduction": "sum", "zero_infinity": True}, {"reduction": "none"}])
@pytest.mark.parametrize("tensors", [True, False])
def test_a_step_is_recorded_as_a_cpu_runs_it(tensors, options):
    def lengths() -> Any:
        given = ([STEPS, STEPS], [4, 3])
        return tuple(torch.tensor(one, device="cpu") for one in given) if tensors else given

    program = record_call(step(lengths, **options))
    assert not program.obstacles
    seen, ran = (
        Counter(one.op.removeprefix("aten::") for one in program.calls),
        on_cpu(step(lengths, "cpu", **options)),
    )
    assert {name: seen[name] for name in SAME} == {name: ran[name] for name in SAME}
    (call,) = [one for one in program.calls if one.op == "aten::_ctc_loss"]
    assert call.options["target_lengths"] == (4, 3)


def test_lengths_that_are_not_known_are_as_long_as_can_be():
    def lengths() -> Any:
        full, drawn = torch.full((ROWS,), STEPS, device="cuda"), torch.randint(1, 5, (ROWS,), device="cuda")
        return full, drawn

    program = record_call(step(lengths))
    assert not program.obstacles
    (call,) = [one for one in program.calls if one.op == "aten::_ctc_loss"]
    assert call.options["target_lengths"] == (4, 4)
