"""Operations that were measured on an H200, as calls: what each short name in the data stands for."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehunch.predict.activities import Activities, total
from tracehunch.predict.ops import Tensor, predict_op, tensor
from tracehunch.predict.ops.call import steps_of
from tracehunch.predict.ops.samples import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracehunch.predict.environment import Environment
    from tracehunch.predict.ops.steps import Step

    Part = tuple[str, Sequence[Tensor], Mapping[str, Any]]

DATA = Path(__file__).parent.parent / "tests" / "data" / "truth" / "ops_measured_h200.jsonl.gz"
FEW = 512
MILLION = 1e6


def one(name: str, **options: Any) -> Callable[[Tensor], list[Part]]:
    """Return a sample of one call on the matrix."""
    return lambda x: [(name, (x,), options)]


def two(name: str, **options: Any) -> Callable[[Tensor], list[Part]]:
    """Return a sample of one call on the matrix and another like it."""
    return lambda x: [(name, (x, x), options)]


def numbers(*shape: int) -> Tensor:
    """Return a tensor of indices."""
    return tensor(shape, "int64")


def rows(x: Tensor) -> Tensor:
    """Return an index for each row."""
    return numbers(x.shape[0])


def mask(x: Tensor) -> Tensor:
    """Return a mask of the matrix."""
    return tensor(x.shape, "bool")


def half(x: Tensor) -> Tensor:
    """Return the left half of the matrix."""
    return x.narrowed(1, max(1, x.shape[1] // 2))


def flat(x: Tensor) -> Tensor:
    """Return the matrix as a vector."""
    seen = x.viewed((x.numel,))
    assert seen is not None
    return seen


def scalar(x: Tensor) -> Tensor:
    """Return a tensor without dimensions."""
    return tensor((), x.dtype)


def after_zeros(name: str, *more: Callable[[Tensor], Tensor]) -> Callable[[Tensor], list[Part]]:
    """Return a sample of an in-place call on fresh zeros."""
    return lambda x: [("zeros_like", (x,), {}), (name, (x, *(make(x) for make in more)), {})]


NAMES: dict[str, Callable[[Tensor], Sequence[Part]]] = {
    **SAMPLES,
    "add_colbroadcast": lambda x: [("add", (x, tensor((x.shape[0], 1), x.dtype)), {})],
    "add_halffloat": lambda x: [("add", (x, tensor(x.shape, "fp32")), {})],
    "all_dim": lambda x: [("all", (mask(x),), {"dim": -1})],
    "amax_all": one("amax"), "max_all": one("max"), "max_dim": one("max", dim=-1),
    "argmax_all": one("argmax"),
    "cat1_uneven": lambda x: [("cat", (x, tensor((x.shape[0], 8), x.dtype)), {"dim": 1})],
    "cat3": lambda x: [("cat", (x, x, x), {"dim": -1})],
    "cat_t": lambda x: [("cat", (x.transposed(), x.transposed()), {"dim": 0})],
    "cat_20": lambda x: [("cat", (x,) * 20, {"dim": 0})],
    "slice_contig0": lambda x: [("clone", (x.narrowed(0, max(1, x.shape[0] // 2)),), {})],
    "cumsum0": one("cumsum", dim=0),
    "cumsum_flat": lambda x: [("cumsum", (flat(x),), {"dim": 0})],
    "cumsum_int": lambda x: [("cumsum", (mask(x),), {"dim": -1})],
    "embedding": lambda x: [("embedding", (x, numbers(min(x.shape[0], FEW))), {})],
    "embedding_big": lambda x: [("embedding", (x, numbers(4096)), {})],
    "eq_t": two("eq"), "pow3": one("pow"), "rsqrt": one("rsqrt"), "clamp": one("clamp"),
    "div_scalar": one("div"),
    "gather": lambda x: [("gather", (x, numbers(x.shape[0], 1)), {})],
    "gather_full": lambda x: [("gather", (x, numbers(1, x.shape[1]).expanded(x.shape)), {})],
    "index_select": lambda x: [("index_select", (x, numbers(min(x.shape[0], FEW))), {"dim": 0})],
    "index_select1": lambda x: [("index_select", (x, numbers(min(x.shape[1], FEW))), {"dim": 1})],
    "index_tensor": lambda x: [("index", (x, numbers(min(x.shape[0], FEW))), {})],
    "index_tensor_big": lambda x: [("index", (x, rows(x)), {})],
    "index_tensor2": lambda x: [("index", (x, rows(x), rows(x)), {})],
    "index_put": lambda x: [("index_put_", (x, rows(x), x), {})],
    "scatter": after_zeros("scatter_", lambda x: numbers(x.shape[0], 1)),
    "scatter_add": after_zeros("scatter_add_", lambda x: numbers(x.shape[0], 1), lambda x: x.narrowed(1, 1)),
    "index_add": after_zeros("index_add_", rows, lambda x: x),
    "layer_norm_nw": one("layer_norm"), "softmax0": one("softmax", dim=0),
    "logsumexp": one("logsumexp", dim=-1),
    "masked_fill_b": lambda x: [("masked_fill", (x, tensor((1, x.shape[1]), "bool")), {})],
    "mean_all": one("mean"), "mean0": one("mean", dim=0), "sum0": one("sum", dim=0),
    "sum_f32": one("sum", dim=-1, dtype="fp32"), "std_all": one("std"), "norm": one("norm"),
    "norm_last": one("norm", dim=-1), "prod": one("prod", dim=-1), "pad2": one("pad", pad=(1, 1, 1, 1)),
    "randn": lambda x: [("randn", (), {"size": x.shape, "dtype": "fp32"})],
    "randn_d": lambda x: [("randn", (), {"size": x.shape, "dtype": x.dtype})],
    "rand_d": lambda x: [("rand", (), {"size": x.shape, "dtype": x.dtype})],
    "randint": lambda x: [("randint", (), {"size": x.shape, "dtype": "int64"})],
    "bernoulli": one("bernoulli_"),
    "repeat_interleave1": one("repeat_interleave", repeats=2, dim=1), "repeat": one("repeat", repeats=(2, 1)),
    "col_write": lambda x: [("copy_", (x.narrowed(1, 1), x.narrowed(1, 1)), {})],
    "slice_write": lambda x: [
        ("copy_", (tensor((x.shape[0], 2 * x.shape[1]), x.dtype).narrowed(1, x.shape[1]), x), {})
    ],
    "sort0": one("sort", dim=0), "sort_flat": lambda x: [("sort", (flat(x),), {})],
    "argsort": one("argsort", dim=-1), "sort_stable": one("sort", dim=-1, stable=True),
    "topk1": one("topk", k=1), "topk5": lambda x: [("topk", (x,), {"k": min(5, x.shape[1])})],
    "topk50": lambda x: [("topk", (x,), {"k": min(50, x.shape[1])})],
    "topk_flat": lambda x: [("topk", (flat(x),), {"k": min(8, x.numel)})],
    "to_fp16": one("to", dtype="fp16"), "to_int": one("to", dtype="int64"),
    "bool_to": lambda x: [("to", (mask(x),), {"dtype": x.dtype})], "tril_": one("tril_"),
    "where_t": lambda x: [
        ("zeros", (), {"size": (), "dtype": x.dtype}), ("where", (mask(x), x, scalar(x)), {})
    ],
    "cross_entropy": lambda x: [
        ("to", (x,), {"dtype": "fp32"}), ("cross_entropy", (x.as_type("fp32"), rows(x)), {})
    ],
    "cross_entropy_d": lambda x: [("cross_entropy", (x, rows(x)), {})],
    "nll": lambda x: [("nll_loss", (x, rows(x)), {})], "mse": two("mse_loss"),
    "bce": two("binary_cross_entropy_with_logits"),
    "glu": lambda x: [("glu", (x,), {})] if x.shape[1] % 2 == 0 else [],
    "softplus": one("softplus"), "leaky": one("leaky_relu"), "lerp": two("lerp"),
    "addcmul": lambda x: [("addcmul", (x, x, x), {})], "add_alpha": two("add"),
    "add_scalar_t": lambda x: [("ones", (), {"size": (), "dtype": x.dtype}), ("add", (x, scalar(x)), {})],
    "add_t": lambda x: [("add", (x, tensor((x.shape[1], x.shape[0]), x.dtype).transposed()), {})],
    "mul_slice": lambda x: [("mul", (half(x),), {})],
    "mul_off1": lambda x: [("mul", (tensor(x.shape, x.dtype, offset=1),), {})],
    "exp_t": lambda x: [("exp", (x.transposed(),), {})], "roll": one("roll"), "flip": one("flip"),
    "isnan_any": lambda x: [("isnan", (x,), {}), ("any", (mask(x),), {})],
    "softmax4d": lambda x: [("softmax", (tensor((1, 1, *x.shape), x.dtype),), {"dim": -1})],
    "group_norm": lambda x: [
        ("group_norm", (tensor((1, *x.shape), x.dtype),), {"num_groups": 8 if x.shape[0] % 8 == 0 else 1})
    ],
    "masked_select": lambda x: [("masked_select", (x, mask(x)), {})],
    "one_hot": lambda x: [("one_hot", (rows(x),), {"num_classes": x.shape[1]})],
    "rope": lambda x: [("neg", (half(x),), {}), ("cat", (half(x), half(x)), {"dim": -1})],
    "arange": lambda x: [
        ("arange", (), {"size": (x.numel if x.numel < MILLION else x.shape[1],), "dtype": "int64"})
    ],
    "cpu": lambda x: [("cpu", (x,), {})] if x.numel < 1 << 22 else [],
    "fwdbwd_gelu": lambda x: [("gelu", (x,), {}), ("gelu_backward", (x, x), {})],
    "fwdbwd_silu": lambda x: [("silu", (x,), {}), ("silu_backward", (x, x), {})],
    "fwdbwd_relu": lambda x: [("relu", (x,), {}), ("threshold_backward", (x, x), {})],
    "fwdbwd_mul": lambda x: [("mul", (x, x), {}), ("mul", (x, x), {})],
    "fwdbwd_sum": lambda x: [("sum", (x,), {}), ("fill_", (x,), {})],
    "fwdbwd_dropout": lambda x: [("dropout", (x,), {}), ("native_dropout_backward", (x, mask(x)), {})],
    "fwdbwd_softmax": lambda x: [("softmax", (x,), {"dim": -1}), ("_softmax_backward_data", (x, x), {})],
    "fwdbwd_log_softmax": lambda x: [("log_softmax", (x,), {}), ("_log_softmax_backward_data", (x, x), {})],
    "fwdbwd_layer_norm_nw": lambda x: [("layer_norm", (x,), {}), ("native_layer_norm_backward", (x, x), {})],
    "fwdbwd_rms_norm": lambda x: [("rms_norm", (x,), {}), ("native_layer_norm_backward", (x, x), {})],
    "fwdbwd_embedding": lambda x: [
        ("embedding", (x, numbers(min(x.shape[0], FEW))), {}),
        (
            "embedding_dense_backward",
            (tensor((min(x.shape[0], FEW), x.shape[1]), x.dtype), numbers(min(x.shape[0], FEW))),
            {"num_weights": x.shape[0]},
        ),
    ],
}  # fmt: skip


@dataclass(frozen=True)
class MeasuredOp:
    """One line: the op's short name, the matrix it worked on, and the activities with microseconds."""

    op: str
    x: Tensor
    ran: tuple[tuple[str, float], ...]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Kernels, copies and memsets."""
        memsets = sum(name.startswith("Memset") for name, _ in self.ran)
        copies = sum(name.startswith("Memcpy") for name, _ in self.ran)
        return len(self.ran) - memsets - copies, copies, memsets

    def predicted(self, env: Environment) -> Activities:
        """Return what the calls should run."""
        return total(
            predict_op(name, tensors, options, env) for name, tensors, options in NAMES[self.op](self.x)
        )

    def steps(self, env: Environment) -> list[Step]:
        """Return the launches expected."""
        return [
            step
            for name, tensors, options in NAMES[self.op](self.x)
            for step in steps_of(name, tensors, options, env)
        ]


def measured_ops() -> Iterator[MeasuredOp]:
    """Yield all lines."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            op, row_count, columns, dtype, activities = json.loads(line)
            yield MeasuredOp(
                op, tensor((row_count, columns), dtype), tuple((name, us) for name, us in activities)
            )
