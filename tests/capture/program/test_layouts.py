"""Strides of views, held against the real ones."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import pytest

from tracehunch.capture.program import record_call
from tracehunch.capture.program.layouts import view_strides

torch = pytest.importorskip("torch")


def some(rng: random.Random) -> tuple[Any, list[int]]:
    """Return a tensor whose dimensions lie in any order, some apart, and a shape of as many numbers."""
    sizes = [rng.choice([1, 1, 2, 3, 4, 6]) for _ in range(rng.randint(1, 4))]
    one = torch.empty([2 * size for size in sizes])[tuple(slice(size) for size in sizes)]
    one = one if rng.random() < 0.5 else torch.empty(sizes)
    one = one.permute(rng.sample(range(len(sizes)), len(sizes)))
    wanted, rest = [], prod(sizes)
    while rest > 1 and len(wanted) < 4:
        step = rng.choice([each for each in range(1, rest + 1) if rest % each == 0])
        wanted.append(step)
        rest //= step
    return one, [*wanted, rest]


def test_strides_are_those_of_real_views():
    rng = random.Random(0)  # noqa: S311  # shapes, no secrets
    seen = 0
    for _ in range(2000):
        one, wanted = some(rng)
        try:
            real = one.view(wanted).stride()
        except RuntimeError:
            real = None
        assert view_strides(one.shape, one.stride(), wanted) == real
        seen += real is not None
    assert seen > 500


def test_a_view_decides_on_the_memory_format_as_in_a_run():
    table = torch.randn(1, 21, 32)
    strides: list[Any] = []

    def run(table: Any) -> Any:
        image = table[:, 1:-4, :].transpose(1, 2).view(1, 32, 4, 4)
        strides.append((image.stride(), image.is_contiguous(memory_format=torch.channels_last)))
        return torch.nn.functional.interpolate(image, size=(8, 8), mode="bicubic")

    record_call(run, (table,))
    run(table)
    assert strides[-1] == strides[0]
