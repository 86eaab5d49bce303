"""Views, copies and memory orders, held against torch on the CPU."""

import random
from math import prod

import pytest
import torch

from tracehunch.predict.attention.views import (
    broadcast,
    expanded,
    is_contiguous,
    is_dense,
    laid_out,
    result_of,
    transposed,
    viewed,
)
from tracehunch.predict.sdpa import TensorSpec


def _random_tensor(rng):
    """Make a small tensor with strides that views have."""
    t = torch.empty([rng.choice([1, 1, 2, 3, 4]) for _ in range(rng.randint(1, 4))])
    for _ in range(rng.randint(0, 3)):
        way = rng.randint(0, 2)
        if way == 0 and t.dim() > 1:
            t = t.transpose(*rng.sample(range(t.dim()), 2))
        elif way == 1:
            t = t.expand([rng.choice([2, 3]) if s == 1 and rng.random() < 0.5 else s for s in t.shape])
        else:
            dim = rng.randrange(t.dim())
            t = t.narrow(dim, 0, min(2, t.shape[dim]))
    return t


def _spec(t):
    return TensorSpec(tuple(t.shape), tuple(t.stride()), "float32")


def _random_shape(rng, elements):
    shape = []
    while elements > 1 and rng.random() < 0.7:
        shape.append(rng.choice([d for d in range(1, elements + 1) if elements % d == 0]))
        elements //= shape[-1]
    shape.append(elements)
    if rng.random() < 0.3:
        shape.insert(rng.randrange(len(shape) + 1), 1)
    return tuple(shape)


def _where_it_matters(shape, strides):
    return [stride for size, stride in zip(shape, strides, strict=True) if size != 1]


@pytest.mark.parametrize("seed", range(20))
def test_views_and_results_are_those_of_torch(seed):
    rng = random.Random(seed)  # noqa: S311  # no secret
    for _ in range(100):
        t = _random_tensor(rng)
        spec = _spec(t)
        assert is_contiguous(spec) == t.is_contiguous()
        assert is_dense(spec) == torch._prims_common.is_non_overlapping_and_dense_or_false(t)
        shape = _random_shape(rng, t.numel())
        try:
            wanted = tuple(t.view(shape).stride())
        except RuntimeError:
            wanted = None
        found = viewed(spec, shape)
        assert (None if found is None else found.stride) == wanted
        doubled = result_of([spec], "float32").stride
        assert _where_it_matters(t.shape, doubled) == _where_it_matters(t.shape, (t * 2).stride())


@pytest.mark.parametrize("seed", range(20))
def test_results_of_two_operands_are_those_of_torch(seed):
    rng = random.Random(seed)  # noqa: S311  # no secret
    compared = 0
    for _ in range(200):
        one, other = _random_tensor(rng), _random_tensor(rng)
        shape = broadcast(tuple(one.shape), tuple(other.shape))
        try:
            wanted = tuple(torch.broadcast_shapes(one.shape, other.shape))
        except RuntimeError:
            wanted = None
        assert shape == wanted
        if shape is None:
            continue
        operands = [expanded(_spec(t), shape) for t in (one, other)]
        strides = laid_out(shape, [t.stride for t in operands])
        if not (one.is_contiguous() and other.is_contiguous()):
            assert _where_it_matters(shape, strides) == _where_it_matters(shape, (one + other).stride())
            compared += 1
    assert compared > 10


def test_transposing_twice_changes_nothing():
    t = TensorSpec((2, 3, 4), (12, 4, 1), "float32")
    assert transposed(transposed(t, 0, 2), 0, 2) == t
    assert prod(transposed(t, 0, 1).shape) == t.numel
