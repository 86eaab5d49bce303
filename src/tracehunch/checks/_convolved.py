"""How many dimensions the tensors of some convolutions have, and the layout to put them into."""

from typing import Any, Final

import numpy as np

from tracehunch.checks._ancestry import called_op
from tracehunch.checks._copy_fixes import CONVOLVING
from tracehunch.facts.model import Facts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE

_RANKS: Final = {"1d": 3, "2d": 4, "3d": 5}
"""Dimensions of a batch, and of a weight, by how the names of ops end."""
_FORMATS: Final = {4: "channels_last", 5: "channels_last_3d"}
_KEEP: Final = (
    "conv1d has no channels_last. Keep tensors as (batch, channels, length) through the network, or run it "
    "as a conv2d of height 1 in channels_last."
)


def ranks(facts: Facts, rows: Int64) -> frozenset[int]:
    """Return how many dimensions the tensors of the convolutions behind rows have: 3, 4, 5 of conv1d, 2d, 3d.

    By the names of the ops that the program or autograd called, else by their recorded shapes, else by the
    names of all convolutions of the trace; empty where nothing tells.
    """
    called = np.unique(called_op(facts.tree, rows))
    found = {_rank(facts, op) for op in called[called != NONE].tolist()}
    if 0 not in found and found:
        return frozenset(found)
    anywhere = {_by_name(name) for name in facts.tree.trace.names if name in CONVOLVING}
    return frozenset((found | anywhere) - {0})


def layout_fix(facts: Facts, rows: Int64) -> str:
    """Say into which layout to put the tensors of the convolutions that caused rows."""
    there = ranks(facts, rows) or frozenset({4})
    formats = [_FORMATS[rank] for rank in sorted(there) if rank in _FORMATS]
    if not formats:
        return _KEEP
    options = " or ".join(f"memory_format=torch.{one}" for one in formats)
    which = f" ({_FORMATS[5]} is for conv3d)" if len(formats) > 1 else ""
    aside = " conv1d has no channels_last: run it as a conv2d of height 1." if 3 in there else ""
    return (
        f"model = model.to({options}){which}, and the input likewise, once: convolutions and what lies "
        f"between them then keep that layout.{aside}"
    )


def _rank(facts: Facts, op: int) -> int:
    """Return the dimensions of one convolution's tensors; 0 where neither name nor shapes tell."""
    return _by_name(facts.tree.trace.name_of(op)) or _by_shapes(facts.tree.trace.input_of(op).dims)


def _by_name(op: str) -> int:
    return _RANKS.get(op[-2:], 0)


def _by_shapes(dims: Any) -> int:
    """Return the dimensions of the weight: an input may come without a batch."""
    tensors = [len(shape) for shape in dims if isinstance(shape, list)] if isinstance(dims, list) else []
    return max((rank for rank in tensors if rank in _RANKS.values()), default=0)
