"""Common operations by short name, on a matrix of so many rows and columns: measured lines as calls."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tracehunch.errors import GuessError
from tracehunch.predict.activities import Activities, cannot_tell, total
from tracehunch.predict.ops.call import predict_op
from tracehunch.predict.ops.tensor import Tensor, tensor

if TYPE_CHECKING:
    from tracehunch.predict.environment import Environment

Part = tuple[str, Sequence[Tensor], Mapping[str, Any]]
Sample = Callable[[Tensor], Sequence[Part]]

_LAST: Final = {"dim": -1}
_ALL: Final[Mapping[str, Any]] = {}


def _one(name: str, *more: Tensor, **options: Any) -> Sample:
    """Return a sample of one call on the matrix and further tensors."""
    return lambda x: [(name, (x, *more), options)]


def _twice(name: str, **options: Any) -> Sample:
    return lambda x: [(name, (x, x), options)]


def _mask(x: Tensor) -> Tensor:
    return tensor(x.shape, "bool")


def _indices(x: Tensor) -> Tensor:
    return tensor((x.shape[0],), "int64")


def _row(x: Tensor) -> Tensor:
    return tensor((x.shape[-1],), x.dtype)


def _size(name: str) -> Sample:
    return lambda x: [(name, (), {"size": x.shape, "dtype": x.dtype})]


def _row_write(x: Tensor) -> list[Part]:
    row = Tensor(x.shape[1:], x.dtype, x.strides[1:])
    return [("copy_", (row, row), {})]


def _cross_entropy(x: Tensor) -> list[Part]:
    target, logits = _indices(x), x.as_type("fp32")
    return [
        ("to", (x,), {"dtype": "fp32"}),
        ("clamp", (target,), {}),
        ("cross_entropy", (logits, target), {}),
    ]


def _half(x: Tensor) -> Tensor:
    return x.narrowed(1, max(1, x.shape[1] // 2))


def _to_other(x: Tensor) -> list[Part]:
    return [("to", (x,), {"dtype": "fp32" if x.dtype != "fp32" else "bf16"})]


SAMPLES: Final[Mapping[str, Sample]] = {
    **{name: _one(name) for name in (
        "gelu", "silu", "sigmoid", "tanh", "exp", "neg", "relu_", "clone", "zero_", "fill_", "dropout",
        "tril", "cpu", "zeros_like", "nonzero",
    )},
    **{name: _twice(name) for name in ("add", "mul", "sub", "eq_t", "maximum") if name != "eq_t"},
    **{name: _size(name) for name in ("zeros", "full", "ones", "randn")},
    "gelu_tanh": _one("gelu"),
    "pow2": _one("pow", exponent=2),
    "rsqrt": lambda x: [("abs", (x,), {}), ("rsqrt", (x,), {})],
    "mul_scalar": _one("mul"),
    "eq": _one("eq"),
    "add_broadcast": lambda x: [("add", (x, _row(x)), {})],
    "masked_fill": lambda x: [("masked_fill", (x, _mask(x)), {})],
    "masked_fill_": lambda x: [("masked_fill_", (x, _mask(x)), {})],
    "where": lambda x: [("where", (_mask(x), x, x), {})],
    "where_scalar": lambda x: [("where", (_mask(x), x), {"other": 0.0})],
    "triu_ones": lambda x: [
        ("ones", (), {"size": x.shape, "dtype": "bool"}), ("triu", (_mask(x),), {}),
    ],
    "arange": lambda x: [("arange", (), {"size": (x.numel,), "dtype": "int64"})],
    "softmax": _one("softmax", **_LAST),
    "log_softmax": _one("log_softmax", **_LAST),
    "softmax_f32": _one("softmax", dim=-1, dtype="fp32"),
    "softmax1024": _one("softmax", **_LAST),
    "layer_norm": lambda x: [("layer_norm", (x, _row(x), _row(x)), {})],
    "layer_norm1024": lambda x: [("layer_norm", (x, _row(x), _row(x)), {})],
    "rms_norm": lambda x: [("rms_norm", (x, _row(x)), {})],
    "cross_entropy": _cross_entropy,
    "sum_last": _one("sum", **_LAST), "mean_last": _one("mean", **_LAST), "var_last": _one("var", **_LAST),
    "amax": _one("amax", **_LAST), "argmax": _one("argmax", **_LAST),
    "sum_all": _one("sum"), "sum": _one("sum"),
    "all": lambda x: [("all", (_mask(x),), {})], "any": lambda x: [("any", (_mask(x),), {})],
    "mean_keep": lambda x: [("pow", (x,), {"exponent": 2}), ("mean", (x,), {"dim": -1, "keepdim": True})],
    "item": lambda x: [("sum", (x,), {}), ("item", (tensor((), x.dtype),), {})],
    "cumsum": _one("cumsum", **_LAST),
    "sort": _one("sort", **_LAST),
    "topk": _one("topk", k=8),
    "cat0": _twice("cat", dim=0), "cat1": _twice("cat", dim=1), "stack": _twice("stack"),
    "pad": _one("pad", pad=(0, 8)),
    "copy_": _twice("copy_"), "copy": _twice("copy_"),
    "contiguous_t": lambda x: [("contiguous", (x.transposed(),), {})],
    "transpose_copy": lambda x: [("contiguous", (x.transposed(),), {})],
    "expand_contig": lambda x: [("contiguous", (tensor((1, x.shape[1]), x.dtype).expanded(x.shape),), {})],
    "slice_contig": lambda x: [("contiguous", (_half(x),), {})],
    "repeat_interleave": _one("repeat_interleave", repeats=2, dim=0),
    "row_write": _row_write,
    "to_float32": _one("to", dtype="fp32"), "to_bf16": _one("to", dtype="bf16"), "to_other": _to_other,
    "view_reshape": lambda x: [("view", (x,), {}), ("reshape", (x,), {"shape": (x.numel,)})],
    "slice": _one("slice"), "split_chunk": lambda x: [("split", (x,), {}), ("chunk", (x,), {})],
    "gather": lambda x: [
        ("clamp", (_indices(x),), {}), ("gather", (x, tensor((x.shape[0], 1), "int64")), {}),
    ],
    "index_select": lambda x: [("index_select", (x, _indices(x)), {"dim": 0})],
    "embedding": lambda x: [("embedding", (x, _indices(x)), {})],
    "index_tensor": lambda x: [("index", (x, _indices(x)), {})],
    "bool_index": lambda x: [("index", (x, _mask(x)), {})],
}  # fmt: skip

_PRODUCTS: Final = frozenset({"mm", "linear", "linear_bias", "addmm", "bmm", "bmm_t", "matmul4d_t"})


def sample_names() -> tuple[str, ...]:
    """Return the short names that are known, sorted."""
    return tuple(sorted((*SAMPLES, *_PRODUCTS, "conv2d")))


def predict_row(row: Mapping[str, Any], env: "Environment") -> Activities:
    """Return what a line of measurements should show.

    The line has `op` (or `kind`) and `dtype`, and `rows` and `cols`, `numel` (rows of 1024), or `M`, `N`, `K`
    and `B`.

    Raises:
        GuessError: the line lacks a key.

    """
    name = str(row.get("op", row.get("kind", "")))
    try:
        if name in _PRODUCTS:
            return predict_op(*_product(name, row), env)
        if name == "conv2d":
            return predict_op(*_convolution(row), env)
        if name not in SAMPLES:
            return cannot_tell(f"{name} is not among the operations that are known")
        shape = _shape(row)
    except KeyError as missing:
        raise GuessError(f"a line for {name} lacks {missing}") from None
    return total(
        predict_op(op, tensors, options, env)
        for op, tensors, options in SAMPLES[name](tensor(shape, row["dtype"]))
    )


def _shape(row: Mapping[str, Any]) -> tuple[int, int]:
    if "numel" in row:
        columns = 1024 if row["numel"] % 1024 == 0 else 1
        return row["numel"] // columns, columns
    return row["rows"], row["cols"]


def _convolution(row: Mapping[str, Any]) -> tuple[str, tuple[Tensor, ...], dict[str, Any]]:
    dtype, channels, made, window = row["dtype"], row["C"], row["O"], row["k"]
    image = tensor((row["N"], channels, row["HW"], row["HW"]), dtype)
    weight, bias = tensor((made, channels, window, window), dtype), tensor((made,), dtype)
    padding = row.get("pad", 1 if window == 3 and row["stride"] == 1 else 0)  # as networks do
    tensors = (image, weight, bias) if row.get("bias", True) else (image, weight)
    return "conv2d", tensors, {"stride": row["stride"], "padding": padding}


def _product(name: str, row: Mapping[str, Any]) -> tuple[str, tuple[Tensor, ...], dict[str, Any]]:
    dtype, m, n, k, batch = row["dtype"], row["M"], row["N"], row["K"], row.get("B", 1)
    if name in ("bmm", "bmm_t", "matmul4d_t"):
        lead = (batch // 4, 4) if name == "matmul4d_t" and batch % 4 == 0 else (batch,)
        b = tensor((*lead, k, n), dtype) if name == "bmm" else tensor((*lead, n, k), dtype).transposed()
        return "matmul", (tensor((*lead, m, k), dtype), b), {}
    a, bias = tensor((m, k), dtype), tensor((n,), dtype)
    if name == "mm":
        return "mm", (a, tensor((k, n), dtype)), {}
    if name == "addmm":
        return "addmm", (bias, a, tensor((k, n), dtype)), {}
    weight = tensor((n, k), dtype)
    return "linear", (a, weight) if name == "linear" else (a, weight, bias), {}
