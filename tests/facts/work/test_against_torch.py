"""The least bytes of ops, against the tensors that PyTorch itself reads and makes when it runs them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tracehunch.facts.work import Work, call_of, work_of
from tracehunch.trace import Trace, read

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402  # after the check that torch is there

F = torch.nn.functional
WRITES = {"aten::fill_", "aten::copy_"}  # they do not read what they write


class Recorder(TorchDispatchMode):
    """Op -> bytes of the tensors that its last call took and returned."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        flat = torch.utils._pytree.tree_leaves((args, kwargs or {}))
        out = torch.utils._pytree.tree_leaves(found)
        flat = flat[1:] if func.name().split(".")[0] in WRITES else flat
        self.bytes[func.name().split(".")[0]] = sum(stored(one) for one in (*flat, *out))
        return found


def stored(one: Any) -> int:
    """Bytes of a tensor with dimensions; what is expanded once."""
    if not isinstance(one, torch.Tensor) or not one.dim():
        return 0
    size = one.element_size()
    for length, stride in zip(one.shape, one.stride(), strict=True):
        size *= length if stride else 1
    return size


A, B = torch.randn(6, 5, 8), torch.randn(5, 8)
HALF = A.to(torch.bfloat16)
INTS = torch.randint(0, 5, (6, 8))
MASK = A > 0
GRAD = torch.randn(6, 5, 8)
IMAGE = torch.randn(2, 8, 12, 10)
TRAIN, EVAL = True, False
WEIGHT, RUNNING = torch.randn(8), torch.ones(8)

CALLS: dict[str, list[Callable[[], Any]]] = {
    "aten::add": [
        lambda: A + B, lambda: A + 1, lambda: HALF + B, lambda: INTS + 1, lambda: HALF + HALF,
        lambda: torch.add(INTS, 0.5), lambda: B.expand(6, 5, 8) + A,
    ],
    "aten::add_": [lambda: A.add_(B), lambda: HALF.add_(1)],
    "aten::div": [lambda: INTS / 2, lambda: A / B],
    "aten::mul": [lambda: MASK * A, lambda: HALF * A[:, :1]],
    "aten::pow": [lambda: A**2, lambda: 2**A],
    "aten::gt": [lambda: A > B],
    "aten::where": [lambda: torch.where(MASK, A, B), lambda: torch.where(MASK, HALF, 0.0)],
    "aten::exp": [HALF.exp, INTS.exp],
    "aten::gelu": [lambda: F.gelu(A)],
    "aten::clamp": [lambda: A.clamp(0, 1)],
    "aten::addcmul": [lambda: torch.addcmul(A, A, B)],
    "aten::silu_backward": [lambda: torch.ops.aten.silu_backward(GRAD, A)],
    "aten::masked_fill_": [lambda: A.clone().masked_fill_(MASK, 0.0)],
    "aten::isneginf": [lambda: torch.isneginf(A)],
    "aten::logical_and": [lambda: torch.logical_and(MASK, INTS[0] > 1)],
    "aten::fill_": [lambda: A.clone().fill_(1.0)],
    "aten::copy_": [lambda: A.clone().copy_(HALF), lambda: A.clone().copy_(B)],
    "aten::_softmax": [lambda: A.softmax(-1), lambda: HALF.softmax(-1)],
    "aten::_log_softmax": [lambda: A.log_softmax(-1)],
    "aten::_softmax_backward_data": [
        lambda: torch.ops.aten._softmax_backward_data(GRAD, A, -1, torch.float32)
    ],
    "aten::sum": [A.sum, lambda: HALF.sum((0, 1), keepdim=True), lambda: INTS.sum(0),
                  lambda: HALF.sum(-1, dtype=torch.float32)],
    "aten::mean": [lambda: A.mean(-1)],
    "aten::amax": [lambda: A.amax((0, 2))],
    "aten::max": [A.max, lambda: A.max(1)],
    "aten::argmax": [lambda: A.argmax(-1)],
    "aten::any": [MASK.any, lambda: MASK.any(-1)],
    "aten::cumsum": [lambda: A.cumsum(0), lambda: MASK.cumsum(-1)],
    "aten::sort": [A.sort],
    "aten::topk": [lambda: A.topk(3)],
    "aten::tril": [B.tril],
    "aten::native_layer_norm": [
        lambda: F.layer_norm(A, (8,), WEIGHT, WEIGHT), lambda: F.layer_norm(A, (5, 8)),
    ],
    "aten::native_layer_norm_backward": [
        lambda: torch.ops.aten.native_layer_norm_backward(
            GRAD, A, [8], A.mean(-1, keepdim=True), A.std(-1, keepdim=True), WEIGHT, WEIGHT, [True] * 3
        ),
        lambda: torch.ops.aten.native_layer_norm_backward(
            GRAD, A, [8], A.mean(-1, keepdim=True), A.std(-1, keepdim=True), WEIGHT, WEIGHT,
            [True, False, False],
        ),
    ],
    "aten::native_group_norm": [lambda: F.group_norm(IMAGE, 4, WEIGHT, WEIGHT)],
    "aten::native_group_norm_backward": [
        lambda: torch.ops.aten.native_group_norm_backward(
            IMAGE, IMAGE, torch.zeros(2, 4), torch.ones(2, 4), WEIGHT, 2, 8, 120, 4, [True] * 3
        )
    ],
    "aten::native_batch_norm": [
        lambda: torch.native_batch_norm(IMAGE, WEIGHT, WEIGHT, RUNNING, RUNNING, EVAL, 0.1, 1e-5),
    ],
    "aten::native_dropout": [lambda: torch.native_dropout(A, 0.5, TRAIN)],
    "aten::mse_loss_backward": [lambda: torch.ops.aten.mse_loss_backward(GRAD, A, A.clone(), 0)],
    "aten::gather": [lambda: A.gather(1, torch.zeros(6, 5, 8, dtype=torch.int64))],
    "aten::embedding_dense_backward": [
        lambda: torch.ops.aten.embedding_dense_backward(GRAD, INTS[:, :5], 9, -1, EVAL)
    ],
    "aten::max_pool2d_with_indices": [
        lambda: torch.ops.aten.max_pool2d_with_indices(IMAGE, [3, 3], [2, 2], [1, 1])
    ],
    "aten::avg_pool2d": [lambda: F.avg_pool2d(IMAGE, 2)],
    "aten::upsample_nearest2d": [lambda: F.interpolate(IMAGE, size=(24, 20))],
    "aten::mm": [lambda: B @ B.t(), lambda: B @ torch.zeros(8, 1).expand(8, 7)],
    "aten::bmm": [lambda: A @ A.transpose(1, 2)],
    "aten::addmm": [lambda: torch.addmm(torch.zeros(5), B, B.t()), lambda: F.linear(B, B, torch.zeros(5))],
    "aten::baddbmm": [lambda: torch.baddbmm(torch.zeros(6, 5, 5), A, A.transpose(1, 2))],
}  # fmt: skip


CASES = [(name, call) for name, calls in CALLS.items() for call in calls]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Work, int]]:
    """The work of each case from a trace of all of them, and the bytes of its tensors."""
    path, bytes_of = tmp_path_factory.mktemp("torch") / "t.json", []
    with torch.profiler.profile(record_shapes=True) as profiler:
        for number, (_, call) in enumerate(CASES):
            with torch.profiler.record_function(f"case {number}"):
                call()
    profiler.export_chrome_trace(str(path))
    for name, call in CASES:
        with Recorder() as recorder:
            call()
        bytes_of.append(recorder.bytes[name])
    trace = read(path)
    return [(work_in(trace, number), moved) for number, moved in enumerate(bytes_of)]


def work_in(trace: Trace, number: int) -> Work:
    name = CASES[number][0]
    rows = {trace.name_of(row): row for row in range(len(trace))}
    case, ends = rows[f"case {number}"], trace.end_ns()
    inside = (trace.start_ns >= trace.start_ns[case]) & (ends <= ends[case])
    row = max(row for row in np.flatnonzero(inside).tolist() if trace.name_of(row) == name)
    args = trace.args_of(row)
    keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    return work_of(call_of(name, *(args.get(key) for key in keys)))


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{n}-{name}" for n, (name, _) in enumerate(CASES)]
)
def test_bytes_are_those_of_the_tensors(number: int, recorded: list[tuple[Work, int]]) -> None:
    work, tensors = recorded[number]
    assert work.bytes == tensors
