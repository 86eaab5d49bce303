"""What PyTorch says to shapes that do not fit, held against what it says."""

import itertools

import pytest

from tracehunch.predict.sdpa.shapes import Misfit, add_in_place, broadcast, expand, matmul

torch = pytest.importorskip("torch")

SHAPES = [(), (1,), (3,), (2, 3), (1, 3), (2, 1), (4, 2, 3), (1, 2, 3), (2, 1, 2, 3)]
STACKS = [
    (2, 3),
    (3, 4),
    (5, 2, 3),
    (5, 3, 4),
    (1, 3, 4),
    (2, 5, 2, 3),
    (1, 5, 3, 2),
    (2, 1, 3, 4),
    (4, 5, 3, 4),
]


def said(function) -> str | None:
    try:
        function()
    except RuntimeError as error:
        return str(error).split("\n", maxsplit=1)[0]
    return None


def told(outcome) -> str | None:
    return outcome.error if isinstance(outcome, Misfit) else None


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SHAPES, SHAPES)))
def test_broadcasts(a, b):
    there = said(lambda: torch.zeros(a) + torch.zeros(b))
    assert told(broadcast(a, b)) == there
    if there is None:
        assert broadcast(a, b) == tuple((torch.zeros(a) + torch.zeros(b)).shape)
    assert told(add_in_place(a, b)) == said(lambda: torch.zeros(a).add_(torch.zeros(b)))


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SHAPES, SHAPES)))
def test_expansions(a, b):
    ours = told(expand(a, b, "torch.FloatTensor"))
    assert ours == said(lambda: torch.zeros(a).expand(b))


@pytest.mark.parametrize(("a", "b"), list(itertools.product(STACKS, STACKS)))
def test_products(a, b):
    there = said(lambda: torch.zeros(a) @ torch.zeros(b))
    ours = matmul(a, b)
    if there is None:
        assert ours == tuple((torch.zeros(a) @ torch.zeros(b)).shape)
    else:
        assert isinstance(ours, Misfit)
