"""The math backend's operations, held against those that torch runs on the CPU."""

import random
from collections import Counter

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from tracehunch.predict.attention import attention_parts
from tracehunch.predict.environment import environment
from tracehunch.predict.sdpa import sdpa_call

H200 = environment("h200", "2.13")
LAYOUTS = ("bhsd", "bshd", "strided_last", "expand_b")

# operations that launch kernels on a GPU: torch's name -> op of the prediction
LAUNCHING = {
    "aten.mul": "aten::mul",
    "aten.clone": "aten::copy_",
    "aten.bmm": "aten::bmm",
    "aten.add": "aten::add_",  # out of place, since a dispatch mode looks on
    "aten._safe_softmax": "aten::_softmax",
    "aten.tril": "aten::tril",
}


class _Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops[str(func).rsplit(".", 1)[0]] += 1
        return func(*args, **(kwargs or {}))


def _tensor(batch, heads, length, width, layout):
    if layout == "bshd":
        return torch.zeros(batch, length, heads, width).transpose(1, 2)
    if layout == "strided_last":
        return torch.zeros(batch, heads, width, length).transpose(2, 3)
    if layout == "expand_b":
        return torch.zeros(1, heads, length, width).expand(batch, -1, -1, -1)
    return torch.zeros(batch, heads, length, width)


@pytest.mark.parametrize("seed", range(12))
def test_operations_are_those_of_torch(seed):
    rng = random.Random(seed)  # noqa: S311  # no secret
    for _ in range(10):
        batch, heads = rng.choice((1, 2, 4)), rng.choice((1, 2, 4, 8))
        shared = rng.choice([h for h in (heads, 1, heads // 2) if h and heads % h == 0])
        queries, keys, width = rng.choice((1, 2, 7)), rng.choice((1, 3, 8)), rng.choice((1, 4, 8))
        layout, causal = rng.choice(LAYOUTS), rng.random() < 0.5
        grouped = shared != heads and (shared != 1 or rng.random() < 0.5)
        q = _tensor(batch, heads, queries, width, layout)
        k, v = (_tensor(batch, shared, keys, width, layout) for _ in range(2))
        with _Recorder() as seen, sdpa_kernel(SDPBackend.MATH):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)
        call = sdpa_call(
            batch,
            heads,
            queries,
            width,
            kv_heads=shared,
            keys=keys,
            dtype="float32",
            layout=layout,
            is_causal=causal,
            enable_gqa=grouped,
        )
        steps = [part.activities for part in attention_parts("math", call, H200)]
        expected = Counter(kernel.op for step in steps for kernel in step.kernels[:1])
        expected["aten::copy_"] += sum(len(step.copies) for step in steps)
        case = (batch, heads, shared, queries, keys, width, layout, causal, grouped)
        for torchs, ours in LAUNCHING.items():
            assert seen.ops[torchs] == expected[ours], (torchs, case)
