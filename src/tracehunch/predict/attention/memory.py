"""Whether the tensors of an attention call fit in a GPU's memory at all."""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Final

from tracehunch.hardware import all_gpus
from tracehunch.predict.attention.views import broadcast, elements_in_memory
from tracehunch.predict.environment import Environment
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.tensor import TensorSpec
from tracehunch.units import size

_AT_MOST: Final = 1.1
"""How much more memory a GPU may have than its data sheet says, whose gigabytes may be 2^30 bytes."""


def too_large(call: SdpaCall, env: Environment, *, scores: bool) -> str:
    """Return why a call cannot run for want of memory, "" if it may.

    Counted are inputs and output, with `scores` also one matrix of them: the least that an unfused variant
    holds. That a call fits by this count does not say that it runs.
    """
    need = _in_memory(call.inputs if call.mask is None else (*call.inputs, call.mask))
    rows = call.q.numel // call.q.shape[-1]
    need += rows * call.v.shape[-1] * call.q.item_bytes
    what = "inputs and output"
    if scores:
        batch = broadcast(call.q.shape[:-2], call.k.shape[:-2]) or call.q.shape[:-2]
        need += prod(batch) * call.q.shape[-2] * call.k.shape[-2] * call.q.item_bytes
        what = "inputs, scores and output"
    there = _largest() if env.gpu is None else env.gpu.memory_bytes
    if need <= _AT_MOST * there:
        return ""
    whose = "the largest GPU known" if env.gpu is None else env.gpu.name
    return f"out of memory: {what} take {size(need)} at the least, {whose} has {size(there)}"


def _in_memory(tensors: Sequence[TensorSpec]) -> int:
    return sum(elements_in_memory(t) * t.item_bytes for t in tensors)


@cache
def _largest() -> int:
    return max(gpu.memory_bytes for gpu in all_gpus())
