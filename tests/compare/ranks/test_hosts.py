"""Why one rank waits for another: its host, its GPU, or neither."""

from __future__ import annotations

import pytest

from tracehunch.compare.ranks.hosts import Hosts


def hosts(needs_us, gpu_us):
    return Hosts((0, 1), needs_us, gpu_us, (0.0, 0.0), frozenset(), ())


@pytest.mark.parametrize(
    ("needs_us", "gpu_us", "says"),
    [
        ((1500.0, 1510.0), (15_000.0, 22_500.0), "The GPU of rank 1 needs 7.500 ms more a step than that of"),
        ((1500.0, 1510.0), (15_000.0, 15_000.0), "The host of rank 1 needs hardly more than that of rank 0"),
        ((1500.0, 1510.0), (22_500.0, 15_000.0), "The host of rank 1 needs hardly more than that of rank 0"),
        ((1500.0, 0.0), (15_000.0, 22_500.0), ""),  # no steps tell
    ],
)
def test_the_gpu_is_named_where_it_needs_more_than_the_host_does(needs_us, gpu_us, says):
    said = hosts(needs_us, gpu_us).why(waits=0, late=1).strip()
    assert said.startswith(says)
    assert bool(said) == bool(says)
    assert ("no rank is slower" in said) == ("hardly" in says)
