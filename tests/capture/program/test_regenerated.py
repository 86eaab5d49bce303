"""Views changed in place: the backward that is recorded is that of a real run, read from its profile."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.capture.program import record_call

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOOKED_AT = (
    "aten::new_zeros", "aten::copy_", "aten::slice_backward", "aten::select_backward", "aten::clone",
    "aten::sum",
)  # fmt: skip
COMPOSED = ("aten::reshape", "aten::contiguous")


def view_of_a_view(x: Any) -> Any:
    part = x.view(4, 4, 6).transpose(1, 2)
    part += 1
    return part.sin()


def slice_and_base(x: Any) -> Any:
    part = x[:, 4:8]
    part.mul_(2)
    return part.sin().sum() + x.cos().sum()


def base_after_view(x: Any) -> Any:
    part = x[:, 4:8]
    x += 1
    return part.sin().sum() + x.cos().sum()


def other_view(x: Any) -> Any:
    pairs = x.view(4, 2, 12)
    pairs[:, 0].mul_(2)
    return pairs.sin()


def view_made_before_and_after(x: Any) -> Any:
    part = x.t()
    x += 1
    return part.sin().sum() + x.t().cos().sum()


def all_of_it(x: Any) -> Any:
    x[:, 4:8] = x[:, :4] * 2
    return x.sin()


def repeated(x: Any) -> Any:
    column = x[:, :1]
    wide = column.expand(4, 6)
    column += 1
    return wide.sin()


def step(function: Callable[[Any], Any], device: str) -> Callable[[], None]:
    def run() -> None:
        x = torch.randn(4, 24, device=device, requires_grad=True)
        torch.autograd.grad(function(x * 2).sum(), x)

    return run


def within(events: list[Any], *, backward: bool = False) -> Iterator[str]:
    for event in events:
        inside = backward or "evaluate_function" in event.name
        if inside and event.name in LOOKED_AT:
            yield event.name
        elif not event.name.startswith("aten::") or event.name in COMPOSED:
            yield from within(event.children, backward=inside)


@pytest.mark.parametrize(
    "function",
    [
        view_of_a_view,
        slice_and_base,
        base_after_view,
        other_view,
        view_made_before_and_after,
        all_of_it,
        repeated,
    ],
)
def test_the_backward_of_a_view_that_was_changed_is_that_of_a_run(function):
    run = step(function, "cpu")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        run()
    called = Counter(within(seen.profiler.kineto_results.experimental_event_tree()))
    program = record_call(step(function, "cuda"), (), {})
    recorded = Counter(one.op for one in program.calls if one.phase == "backward" and one.op in LOOKED_AT)
    assert recorded == called


def test_gradients_lie_as_their_bases_do():
    program = record_call(step(view_of_a_view, "cuda"), (), {})
    made = [one for one in program.calls if one.phase == "backward"]
    (placed,) = [at for at, one in enumerate(made) if one.op == "aten::new_zeros"]
    base = made[placed + 3]
    assert [one.op for one in made[placed:][:4]] == [
        "aten::new_zeros", "aten::as_strided", "aten::copy_", "aten::as_strided",
    ]  # fmt: skip
    assert base.outputs[0].shape == (4, 24)
    assert base.outputs[0].is_contiguous


def test_values_are_followed_through_it():
    kept = []

    def run() -> None:
        x = torch.ones(4, 24, device="cuda", requires_grad=True)
        (grad,) = torch.autograd.grad(view_of_a_view(x * 2).sum(), x)
        kept.append(bool((grad == 2 * torch.cos(torch.tensor(3.0, device="cuda"))).all()))

    record_call(run, (), {}, values=True)
    assert kept == [True]
