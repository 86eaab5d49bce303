"""What it takes to write a tensor as text is what it takes on the CPU, where its values are known."""

from __future__ import annotations

from collections import Counter

import pytest

from tracehunch.capture.program import record_call

torch = pytest.importorskip("torch")

CALLED = tuple(
    f"aten::{name}"
    for name in (
        "mul", "ne", "eq", "bitwise_and", "masked_select", "min", "max", "ceil", "div", "gt", "lt",
        "_local_scalar_dense", "unbind",
    )
)  # fmt: skip

WRITTEN = {
    "numbers": (torch.tensor([1.5, 2.0, 3.0]), torch.neg),
    "whole numbers": (torch.arange(20), torch.neg),
    "a corner of many": (torch.zeros(200, 60), torch.neg),
    "flags": (torch.tensor([1, 0]), torch.logical_not),
    "one number": (torch.tensor([2.5]), torch.sum),
    "one whole number": (torch.tensor([3]), torch.sum),
}


@pytest.mark.parametrize("name", list(WRITTEN))
def test_known_values_are_written_as_on_the_cpu(name, capsys):
    one, make = WRITTEN[name]

    def run(one: object) -> None:
        print(make(one))  # noqa: T201  # what is looked at

    program = record_call(run, (one,), values=True)
    with torch.profiler.profile() as profiler:
        run(one)
    real = Counter(event.name for event in profiler.events() if event.name in CALLED)
    real["aten::_local_scalar_dense"] -= real["aten::masked_select"]  # which the CPU counts for itself
    assert not program.obstacles
    assert Counter(call.op for call in program.calls if call.op in CALLED) == +real
    assert "tensor(" in capsys.readouterr().out.lower()


@pytest.mark.parametrize("write", [str, repr, "{}".format])
def test_unknown_values_are_told_with_the_line(write):
    program = record_call(lambda one: write(torch.rand_like(one)), (torch.zeros(2, 4),))
    (told,) = program.obstacles
    assert not told.stops
    assert told.line.startswith("test_printing.py:")
    assert "--values" in told.remedy


def test_what_is_no_element_is_not_written():
    def run(x: object) -> str:
        return f"{x.shape} {x.dtype} {x[:0]}"  # type: ignore[attr-defined]  # a tensor

    assert not record_call(run, (torch.randn(2, 4),)).obstacles
