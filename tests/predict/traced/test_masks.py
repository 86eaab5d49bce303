from dataclasses import replace

import pytest

from tracehunch.predict.sdpa import sdpa_call, tensor
from tracehunch.predict.traced.masks import may_be_causal, triangles


def call(mask, length=256, keys=256):
    return sdpa_call(2, 8, length, 64, keys=keys, mask=mask)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (call((256, 256)), "possible"),
        (call((1, 1, 256, 256)), "possible"),
        (call((2, 1, 256, 256)), "no"),  # one for each batch: padding
        (call((1, 8, 256, 256)), "no"),  # one for each head: a bias
        (call((256, 1)), "no"),
        (call((128, 256), length=128), "no"),
        (call((1, 1), length=1, keys=1), "no"),
        (call(None), "no"),
    ],
)
def test_shapes_of_a_causal_mask(given, expected):
    assert may_be_causal(given, frozenset()) == expected
    likely = {"possible": "likely"}.get(expected, expected)
    assert may_be_causal(given, frozenset({(256, 256)})) == likely
    assert may_be_causal(given, frozenset({(512, 512)})) == expected


def test_an_expanded_mask_is_one_for_all():
    expanded = replace(tensor((2, 8, 256, 256), "bool"), stride=(0, 0, 256, 1))
    assert may_be_causal(call(expanded), frozenset()) == "possible"


def test_triangles_are_those_that_the_program_makes(tree_of):
    assert triangles(tree_of("h200_calls/sdpa_calls")) == {(256, 256)}
    assert triangles(tree_of("h200/ops/boolmask_auto")) == frozenset()
    assert triangles(tree_of("h200/seeds/shapes_sdpa_math")) == {(1024, 1024)}
