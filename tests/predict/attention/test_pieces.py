"""Launches of one operation on tensors beyond 2 GiB, as counted on an H200."""

import pytest

from tracehunch.predict.attention.pieces import pieces
from tracehunch.predict.attention.views import expanded, fresh

CUT = [
    ((2, 32, 4096, 4096), "float32", 2),  # 4 GiB
    ((2, 32, 4096, 4096), "bfloat16", 1),  # 2 GiB, of which the last element lies below 2^31
    ((4, 16, 4096, 4096), "float32", 2),
    ((1, 4, 16384, 16384), "float32", 2),
    ((3, 7, 6000, 6000), "float32", 2),
    ((8, 16, 4096, 4096), "float32", 4),
    ((1, 32, 8192, 8192), "float32", 4),
    ((8, 16, 4096, 4096), "bfloat16", 2),
    ((8, 16, 4096, 4096), "bool", 2),  # 2^31 elements
    ((8, 16, 1024, 1024), "float32", 1),
]


@pytest.mark.parametrize(("shape", "dtype", "launches"), CUT)
def test_launches(shape, dtype, launches):
    scores = fresh(shape, dtype)
    assert pieces((scores,)) == launches
    mask = expanded(fresh(shape[-2:], "bool"), shape)
    assert pieces((scores, scores, mask)) == launches


def test_the_largest_operand_counts():
    shape = (2, 32, 4096, 4096)
    assert pieces((fresh(shape, "bool"), fresh(shape, "float32"))) == 2


def test_what_is_expanded_takes_no_memory():
    assert pieces((expanded(fresh((1, 4096), "float32"), (65536, 4096)),)) == 1
