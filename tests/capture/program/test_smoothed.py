"""Cross entropy with weights and smoothed labels is made of what it is on the CPU."""

from __future__ import annotations

import pytest

from tracehunch.capture.program import record_call

torch = pytest.importorskip("torch")

CALLED = tuple(
    f"aten::{name}"
    for name in (
        "_log_softmax", "nll_loss_forward", "nll_loss2d_forward", "mul", "neg", "eq", "masked_fill_",
        "bitwise_not", "masked_select", "gather", "div", "add", "masked_fill",
    )
)  # fmt: skip

SHAPES = {"rows": ((8, 10), (8,)), "one row": ((10,), ()), "pixels": ((2, 10, 4, 4), (2, 4, 4))}


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_it_calls_what_it_does_on_the_cpu(shape, smoothing, reduction):
    scores, targets = SHAPES[shape]
    loss = torch.nn.CrossEntropyLoss(torch.rand(10), label_smoothing=smoothing, reduction=reduction)
    given = (torch.randn(scores), torch.randint(0, 10, targets))
    program = record_call(loss, given)
    with torch.profiler.profile() as profiler:
        loss(*given)
    assert not program.obstacles
    assert [one.op for one in program.calls if one.op in CALLED] == [
        one.name for one in profiler.events() if one.name in CALLED
    ]


def test_where_targets_are_not_known_all_count():
    loss = torch.nn.CrossEntropyLoss(torch.rand(10), label_smoothing=0.1)

    def run(scores: object) -> object:
        return loss(scores, torch.randint_like(scores[:, 0], 10).long())  # type: ignore[index]  # a tensor

    program = record_call(run, (torch.randn(8, 10),))
    assert not program.obstacles
    (gathered,) = [one for one in program.calls if one.op == "aten::gather"]
    assert gathered.outputs[0].shape == (8,)
