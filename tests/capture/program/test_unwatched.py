"""The backward is recorded as it runs unwatched: each step is held against a profile of a real run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.capture.program import record_call

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS = 8
PLACES = torch.arange(ROWS * ROWS).reshape(ROWS, ROWS) % ROWS
TARGET = torch.full((ROWS, ROWS), 0.25)
IN_PLACE = (
    "aten::scatter_", "aten::scatter_add_", "aten::index_add_", "aten::_index_put_impl_", "aten::put_",
    "aten::sub_", "aten::mul_", "aten::masked_fill_", "aten::index_fill_", "aten::add_",
)  # fmt: skip
OTHERWISE = (*(name.removesuffix("_") for name in IN_PLACE), "aten::index_put")

STEPS: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: x.max(1).values,
    "min": lambda x: x.min(1).values,
    "topk": lambda x: x.topk(2).values,
    "sort": lambda x: x.sort(-1).values,
    "stable sort": lambda x: torch.sort(x, stable=True).values,
    "median": lambda x: x.median(1).values,
    "nanmedian": lambda x: x.nanmedian(1).values,
    "kthvalue": lambda x: x.kthvalue(2).values,
    "mode": lambda x: x.mode(1).values,
    "gather": lambda x: x.gather(1, PLACES.to(x.device)),
    "cummax": lambda x: x.cummax(1).values,
    "index_select": lambda x: x.index_select(0, PLACES[0].to(x.device)),
    "take": lambda x: x.take(PLACES.to(x.device)),
    "atan2": lambda x: torch.atan2(x, x + 1),
    "trace": lambda x: x.trace(),
    "squares": lambda x: x * x,
    "index": lambda x: x[PLACES[0].to(x.device)],
    "bce": lambda x: torch.nn.functional.binary_cross_entropy_with_logits(x, TARGET.to(x.device)),
    "bce weighed": lambda x: torch.nn.functional.binary_cross_entropy_with_logits(
        x, TARGET.to(x.device), weight=TARGET.to(x.device), pos_weight=TARGET[0].to(x.device)
    ),
}


def backward_of(function: Callable[[Any], Any], device: str) -> Callable[[], None]:
    def step() -> None:
        x = torch.randn(ROWS, ROWS, device=device, requires_grad=True)
        torch.autograd.grad(function(x).sum(), x)

    return step


def below(event: Any) -> Iterator[str]:
    """Name the operations of interest that a step of the backward calls."""
    for child in event.children:
        if child.name in IN_PLACE + OTHERWISE:
            yield child.name
        else:
            yield from below(child)


def in_a_run(function: Callable[[Any], Any]) -> list[str]:
    step = backward_of(function, "cpu")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as run:
        step()
    found: list[str] = []
    waiting = list(run.profiler.kineto_results.experimental_event_tree())
    while waiting:
        event = waiting.pop()
        if "evaluate_function" in event.name:
            found += below(event)
        else:
            waiting += event.children
    return found


@pytest.mark.parametrize("name", list(STEPS))
def test_the_backward_is_in_place_where_a_run_is(name):
    called = in_a_run(STEPS[name])
    program = record_call(backward_of(STEPS[name], "cuda"), (), {})
    recorded = [one.op for one in program.calls if one.phase == "backward" and one.op in IN_PLACE + OTHERWISE]
    assert set(called) & set(IN_PLACE)  # else this shows nothing
    assert sorted(recorded) == sorted(called)


def test_the_backward_of_indexing_checks_no_index_again():
    program = record_call(backward_of(STEPS["index"], "cuda"), (), {})
    (put,) = [one for one in program.calls if one.op == "aten::_index_put_impl_"]
    assert put.options["unsafe"]


@pytest.mark.parametrize("name", ["prod", "cumprod"])
def test_a_shortcut_by_values_is_told(name):
    program = record_call(backward_of(lambda x: getattr(x, name)(1), "cuda"), (), {})
    assert [one.reason for one in program.obstacles if f"backward of {name}" in one.reason]


def test_a_step_of_the_program_itself_is_taken_as_it_is():
    class Mine(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return x * 2

        @staticmethod
        def backward(_, grad):
            zeros = torch.zeros_like(grad)
            return zeros.scatter(1, PLACES.to(grad.device), grad)

    program = record_call(backward_of(Mine.apply, "cuda"), (), {})
    assert [one.op for one in program.calls if "scatter" in one.op] == ["aten::scatter"]


def test_linear_adds_its_bias_in_place_where_rows_are_not_side_by_side():
    layer = torch.nn.Linear(ROWS, 3)
    x = torch.randn(2, ROWS, 4)

    def run() -> None:
        layer(x.transpose(1, 2))
        layer(x.transpose(1, 2).contiguous())
        with torch.inference_mode():
            layer(x.transpose(1, 2))

    program = record_call(run, (), {})
    added = [one.op for one in program.calls if one.op in ("aten::add", "aten::add_", "aten::addmm")]
    assert added == ["aten::add_", "aten::addmm", "aten::add_"]


def test_ones_are_written_into_zeros():
    def run() -> None:
        torch.nn.functional.one_hot(torch.arange(4, device="cuda"), 6)

    calls = [one for one in record_call(run, (), {}).calls if one.op != "aten::unsqueeze"]
    assert [one.op for one in calls] == ["aten::arange", "aten::zeros", "aten::scatter_"]
    assert calls[-1].outputs[0].shape == (4, 6)
