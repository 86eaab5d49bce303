"""Who owns what, asked in several ways: for one call, for all calls at once, and for the last call."""

import numpy as np
import pytest

from tracehunch.trace import read
from tracehunch.tree import NONE, link

NAMES = ("models/llama_sdpa_train", "ranks/ddp/rank0", "situations/decode_cuda_graph")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["gpu", "ops", "launches"])
def test_pairs_and_last_calls_are_those_of_each_call(h200, name, kind):
    ownership = link(read(h200 / f"{name}.json.gz")).ownership
    layout, calls = getattr(ownership, kind), np.arange(len(ownership.spans))
    n_items = layout.sums()[0].max()
    last = np.full(n_items, NONE)
    for call in calls.tolist():
        items, own = layout.items_of(call)
        mine = layout.pairs.of(call)
        assert np.array_equal(layout.pairs.item[mine], items)
        assert np.array_equal(layout.pairs.own[mine], own)
        assert (np.diff(items) > 0).all()
        last[items] = call
    assert np.array_equal(layout.last_call(), last)
