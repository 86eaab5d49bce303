"""Gathering, scattering and joining: how much is read and written follows from the shapes of the indices.

Rows that are picked twice are counted twice: which ones are, the shapes do not tell.
"""

import math

from tracehunch.facts.work.dtypes import WORDS
from tracehunch.facts.work.inputs import Call, NotRecorded
from tracehunch.facts.work.work import Work, elements, moved, moving


def gather(call: Call) -> Work:
    """Read an element for each index, and write it."""
    one, index = call.tensor(0), call.tensor(2)
    return moving([moved(index), 2 * elements(index.numel, one.dtype)])


def index_select(call: Call) -> Work:
    """Read the slices that are picked along a dimension, and write them."""
    one, index = call.tensor(0), call.tensor(2)
    size = one.shape[call.integer(1)] if one.shape else 1
    return moving([moved(index), 2 * elements(one.numel // max(size, 1) * index.numel, one.dtype)])


def embedding(call: Call) -> Work:
    """Read the rows that are looked up, and write them."""
    weight, index = call.tensor(0), call.tensor(1)
    return moving([moved(index), 2 * elements(index.numel * weight.shape[-1], weight.dtype)])


def embedding_backward(call: Call) -> Work:
    """Read gradient and indices, and write the gradient of the whole table."""
    grad, index = call.tensor(0), call.tensor(1)
    return moving([moved(grad, index), elements(call.integer(2) * grad.shape[-1], grad.dtype)])


def scatter(call: Call) -> Work:
    """Read indices and what is put there, if it is a tensor, and write that many elements."""
    one, index, source = call.tensor(0), call.tensor(2), call.optional(3)
    read = elements(index.numel, source.dtype) if source is not None and source.shape else 0
    return moving([moved(index), read, elements(index.numel, one.dtype)])


def scatter_add(call: Call) -> Work:
    """Read indices and what is added, and read and write that many elements."""
    one, index, source = call.tensor(0), call.tensor(2), call.tensor(3)
    added = elements(index.numel, source.dtype)
    return moving([moved(index), added, 2 * elements(index.numel, one.dtype)])


def index_copy(call: Call) -> Work:
    """Read indices and slices, and write the slices."""
    one, index, source = call.tensor(0), call.tensor(2), call.tensor(3)
    return moving([moved(index, source), elements(source.numel, one.dtype)])


def index_add(call: Call) -> Work:
    """Read indices and slices, and read and write the slices that they are added to."""
    one, index, source = call.tensor(0), call.tensor(2), call.tensor(3)
    return moving([moved(index, source), 2 * elements(source.numel, one.dtype)])


def cat(call: Call) -> Work:
    """Read all tensors and write them again. The kernel's name tells the size of their elements."""
    parts = call.tensors(0)
    out = call.out(2)
    size = call.element_bytes if out is None else out.itemsize
    if size is None:
        raise NotRecorded(f"the type of the tensors that {call.name} joins was not recorded")
    return moving(size * (part.stored_bytes + part.numel) for part in parts)  # listed as bytes


def nll_loss(call: Call) -> Work:
    """Read a target and the score it picks for each row; what is written is small, or written before."""
    scores, target = call.tensor(0), call.tensor(1)
    return moving([moved(target), elements(target.numel, scores.dtype)])


def nll_loss_backward(call: Call) -> Work:
    """Read a target for each row, and write the gradient of the score it picks (zeroed before)."""
    scores, target = call.tensor(1), call.tensor(2)
    return moving([moved(target), elements(target.numel, scores.dtype)])


def arange(call: Call) -> Work:
    """Write the numbers from a start to an end, as stated."""
    out = call.out(0)
    start, end, step = (_number(call, at) for at in range(3))
    count = max(math.ceil((end - start) / step), 0) if step else 0
    return moving([elements(count, WORDS["long"] if out is None else out.dtype)])


def _number(call: Call, at: int) -> float:
    try:
        return float(call.value(at))
    except ValueError:
        raise NotRecorded(f"the arguments of {call.name} were not recorded") from None
