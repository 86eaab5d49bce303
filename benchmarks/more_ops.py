"""Operations of models and optimizers measured on an H200, forward and backward, against what is predicted.

    python benchmarks/more_ops.py       # launches right, and how far off the times are

Each row of `ops_more_h200` is made of the calls that ran it, as autograd makes them on the way back.
"""

from __future__ import annotations

import gzip
import json
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehunch.predict.activities import Activities, total
from tracehunch.predict.environment import environment
from tracehunch.predict.ops import Tensor, predict_op, tensor
from tracehunch.predict.ops.dtypes import dtype_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tracehunch.predict.environment import Environment

    Part = tuple[str, Sequence[Tensor], Mapping[str, Any]]
    Row = Mapping[str, Any]

DATA = Path(__file__).parent.parent / "tests" / "data" / "truth" / "ops_more_h200.jsonl.gz"
LARGE = 10  # us
FOREACH: dict[str, tuple[str, int, dict[str, Any]]] = {
    "add_list": ("_foreach_add_", 2, {}), "add_scalar": ("_foreach_add_", 1, {"scalar": 1e-8}),
    "mul_scalar": ("_foreach_mul_", 1, {"scalar": 0.99}), "lerp": ("_foreach_lerp_", 2, {"weight": 0.1}),
    "addcmul": ("_foreach_addcmul_", 3, {"value": 0.1}), "addcdiv": ("_foreach_addcdiv_", 3, {"value": 0.1}),
    "sqrt": ("_foreach_sqrt", 1, {}), "div_list": ("_foreach_div_", 2, {}), "norm": ("_foreach_norm", 1, {}),
    "zero": ("_foreach_zero_", 1, {}), "copy": ("_foreach_copy_", 2, {}),
    "adamw": ("_fused_adamw_", 4, {}), "sgd": ("_fused_sgd_", 3, {}),
}  # fmt: skip
"""Name, lists given, and numbers."""


def image(row: Row, *, channels: str = "C") -> Tensor:
    """Return a batch of images, or of vectors where the side is 1, in the layout of the row."""
    batch, wide, side, dtype = row["N"], row[channels], row["HW"], dtype_word(row["dtype"])
    if side == 1 and row["op"] == "batch_norm":
        return tensor((batch, wide), dtype)
    if row.get("cl"):
        return Tensor((batch, wide, side, side), dtype, (wide * side * side, 1, side * wide, wide))
    return tensor((batch, wide, side, side), dtype)


def matrix(row: Row) -> Tensor:
    """Return the rows that are worked on."""
    return tensor((row["R"], row["C"]), dtype_word(row["dtype"]))


def batch_norm(row: Row, *, backward: bool) -> list[Part]:
    """Batch norm with statistics, by cuDNN or PyTorch."""
    x, params = image(row), dtype_word(row["params"])
    weights = [tensor((row["C"],), params)] * (4 if row["affine"] else 2)
    if not backward:
        return [("batch_norm", (x, *weights), {"training": row["training"]})]
    cudnns = row["affine"] and row["training"] and params == "fp32" and x.dtype != "bf16"
    if cudnns and len(x.shape) > 2:
        return [("cudnn_batch_norm_backward", (x, x, *weights), {})]
    options = {"train": row["training"], "output_mask": (True, row["affine"], row["affine"])}
    return [("native_batch_norm_backward", (x, x, *weights), options)]


def layer_norm(row: Row, *, backward: bool) -> list[Part]:
    """Norms of rows, with weights and a bias where there is one."""
    x, weight = matrix(row), tensor((row["C"],), dtype_word(row["dtype"]))
    weights = [weight] * len(row["which"])
    name = "native_layer_norm_backward" if row["op"] == "layer_norm" else "_fused_rms_norm_backward"
    if backward:
        return [(name, (x, x, *weights), {"output_mask": (True, True, len(weights) > 1)})]
    return [(row["op"], (x, *weights), {})]


def group_norm(row: Row, *, backward: bool) -> list[Part]:
    """Norms of groups with weights."""
    x, weight = image(row), tensor((row["C"],), dtype_word(row["dtype"]))
    if backward:
        return [("native_group_norm_backward", (x, x, weight), {"group": row["G"]})]
    return [("group_norm", (x, weight, weight), {"num_groups": row["G"]})]


def cross_entropy(row: Row, *, backward: bool) -> list[Part]:
    """Losses of rows; the way back of smoothed labels is a dozen calls more, left out."""
    x, target = matrix(row), tensor((row["R"],), "int64")
    options = {"reduction": row["reduction"], "label_smoothing": row["smoothing"]}
    if not backward:
        return [("cross_entropy", (x, target), options)]
    return [] if row["smoothing"] else _loss_backward(x, target, options, dim=1)


def positions(row: Row, *, backward: bool) -> list[Part]:
    """Losses over positions: classes come second, and may be the ones that lie next to each other."""
    dtype = dtype_word(row["dtype"])
    x = tensor((row["N"], row["C"], *row["L"]), dtype)
    if row["transposed"]:
        x = tensor((row["N"], *row["L"], row["C"]), dtype).transposed()
    target, options = tensor((row["N"], *row["L"]), "int64"), {"reduction": row["reduction"]}
    if backward:
        return _loss_backward(x, target, options, dim=1)
    return [("cross_entropy", (x, target), options)]


def _loss_backward(x: Tensor, target: Tensor, options: Mapping[str, Any], dim: int) -> list[Part]:
    made = tensor(x.shape, x.dtype)
    name = "nll_loss2d_backward" if len(x.shape) > 2 else "nll_loss_backward"
    return [
        (name, (target, made, target), options),
        ("_log_softmax_backward_data", (made, made), {"dim": dim}),
    ]


def embedding(row: Row, *, backward: bool) -> list[Part]:
    """Rows picked, and their gradients added up."""
    dtype, picked = dtype_word(row["dtype"]), tensor((row["n"],), "int64")
    if backward:
        grad = tensor((row["n"], row["C"]), dtype)
        return [("embedding_dense_backward", (grad, picked), {"num_weights": row["V"]})]
    return [("embedding", (tensor((row["V"], row["C"]), dtype), picked), {})]


def index_put(row: Row, *, backward: bool) -> list[Part]:
    """Values added up by index."""
    del backward
    values = tensor((row["n"], row["C"]), dtype_word(row["dtype"]))
    return [("index_put_", (matrix(row), tensor((row["n"],), "int64"), values), {"accumulate": True})]


def pool(row: Row, *, backward: bool) -> list[Part]:
    """Pooling and resizing of images."""
    x, kind = image(row), row["kind"]
    name, side, options = {
        "max": ("max_pool2d", row["HW"] // 2, {"kernel_size": 2}),
        "avg": ("avg_pool2d", row["HW"] // 2, {"kernel_size": 2}),
        "adaptive1": ("adaptive_avg_pool2d", 1, {"output_size": 1}),
        "adaptive7": ("adaptive_avg_pool2d", 7, {"output_size": 7}),
        "nearest": ("upsample_nearest2d", 2 * row["HW"], {"scale_factors": 2}),
        "bilinear": ("upsample_bilinear2d", 2 * row["HW"], {"scale_factors": 2}),
    }[kind]
    if not backward:
        return [(name, (x,), options)]
    grad = image({**row, "HW": side})
    if kind == "adaptive1":
        spread = tensor((row["N"], row["C"], 1, 1), grad.dtype).expanded(x.shape)
        return [("div", (spread,), {})] if not row["cl"] else []
    back = {"max": "max_pool2d_with_indices_backward", "adaptive7": "_adaptive_avg_pool2d_backward"}
    return [(back.get(kind, f"{name}_backward"), (grad,), {"input_size": x.shape})]


def lists(row: Row, *, backward: bool) -> list[Part]:
    """Operations on lists of tensors."""
    del backward
    name, given, options = FOREACH[row["which"]]
    return [(name, [tensor((size,), dtype_word(row["dtype"])) for size in row["numels"]] * given, options)]


OPS: dict[str, Callable[..., list[Part]]] = {
    "batch_norm": batch_norm, "layer_norm": layer_norm, "rms_norm": layer_norm, "group_norm": group_norm,
    "cross_entropy": cross_entropy, "ce_nd": positions, "embedding": embedding, "index_put": index_put,
    "pool": pool, "foreach": lists, "fused": lists,
}  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """One direction of a row, the calls that make it and the activities with microseconds."""

    row: Row
    direction: str
    parts: Sequence[Part]
    activities: Sequence[tuple[str, float]]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Kernels, copies and memsets."""
        memsets = sum(name.startswith("Memset") for name, _ in self.activities)
        copies = sum(name.startswith("Memcpy") for name, _ in self.activities)
        return len(self.activities) - memsets - copies, copies, memsets

    def predicted(self, env: Environment) -> Activities:
        """Return what the calls should run."""
        return total(predict_op(name, tensors, options, env) for name, tensors, options in self.parts)


def measured() -> Iterator[Ran]:
    """Yield each direction of each row whose calls are known."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            row = json.loads(line)
            for direction in ("forward", "backward"):
                parts = OPS[row["op"]](row, backward=direction == "backward")
                if parts and isinstance(row.get(direction), list):
                    yield Ran(row, direction, parts, [(name, us) for name, us in row[direction]])


def report(rows: Iterable[Ran], env: Environment) -> None:
    """Print launches right and untold, and the median error of times, for each operation and direction."""
    right: dict[tuple[str, str], list[bool | None]] = defaultdict(list)
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    inside: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for one in rows:
        key, said = (one.row["op"], one.direction), one.predicted(env)
        told = (said.kernel_count, said.copy_count, said.memsets)
        right[key].append(None if None in told else told == one.counts)
        took = sum(us for _, us in one.activities)
        if said.time is not None and told == one.counts:
            ratios[key].append(abs(said.time.mid_us / took - 1))
            inside[key].append(said.time.low_us <= took <= said.time.high_us)
    for key, values in sorted(right.items()):
        words = f"{values.count(True):4} of {len(values):4}, cannot tell {values.count(None):3}"
        off = f"off by {statistics.median(ratios[key]):4.0%}, in range {statistics.mean(inside[key]):4.0%}"
        print(f"{key[0]:14}{key[1]:9} launches right {words}; time {off}")


if __name__ == "__main__":
    report(measured(), environment("h200", "2.11", 91900))
