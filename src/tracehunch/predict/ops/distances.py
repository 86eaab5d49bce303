"""Distances between rows, and losses that ATen composes element by element.

Sources: `_euclidean_dist` in ATen/native/Distance.cpp, `cdist_backward_kernel_impl` in
ATen/native/cuda/DistanceKernel.cu and `soft_margin_loss` in ATen/native/Loss.cpp.
"""

from tracehunch.predict.ops.composed import reduced_loss
from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.layouts import cat
from tracehunch.predict.ops.products import matmul
from tracehunch.predict.ops.reductions import reduction
from tracehunch.predict.ops.steps import Call, Steps, fresh, joined, kernel, like, pointwise, under
from tracehunch.predict.ops.tensor import Tensor, broadcast


def euclidean(call: Call) -> Steps:
    """Square, add up and put the sums beside the rows, so that one product gives all distances squared."""
    one, other = call.first, call.at(1)
    sums = [_squares(rows, call.sms) for rows in (one, other)]
    double = under("aten::mul", pointwise("MulFunctor", like([one], one.dtype), [one]))
    wide = [fresh((*rows.shape[:-1], rows.size(-1) + 2), rows.dtype) for rows in (one, other)]
    edge = [fresh((*rows.shape[:-1], 1), rows.dtype) for rows in (one, other)]
    put = [
        under("aten::cat", cat(Call("cat", (rows, ends, ends), {"dim": -1}, call.env)))
        for rows, ends in ((one, edge[0]), (other, edge[1]))
    ]
    product = matmul(Call("matmul", (wide[0], wide[1].transposed()), {}, call.env))
    op = "aten::mm" if len(one.shape) == len(other.shape) == 2 else "aten::bmm"
    out = _distances(one, other)
    end = [
        under("aten::clamp_min_", pointwise("", out, [out])),
        under("aten::sqrt_", pointwise("", out, [out])),
    ]
    return joined([*sums, double, *put, under(op, product), *end])


def _squares(rows: Tensor, sms: int) -> Steps:
    squares = like([rows], rows.dtype)
    return joined(
        [
            under("aten::pow", pointwise("pow_tensor_scalar_kernel_impl", squares, [rows])),
            under("aten::sum", reduction(squares, (len(rows.shape) - 1,), sms)),
            fill_kernel(fresh((*rows.shape[:-1], 1), rows.dtype)),
        ]
    )


def _distances(one: Tensor, other: Tensor) -> Tensor:
    lead = broadcast(one.shape[:-2], other.shape[:-2])
    return fresh((*lead, one.size(-2), other.size(-2)), one.dtype)


def cdist_backward(call: Call) -> Steps:
    """Derive each pair of rows, and add up over the other side's."""
    one, other = call.at(1), call.at(2)
    pairs = fresh((*one.shape[:-2], other.size(-2), *one.shape[-2:]), one.dtype)
    if pairs.numel == 0:
        return ()
    run = kernel("cdist_backward_kernel_cuda_impl", "distance", "strided", 2 * pairs.nbytes, dtype=one.dtype,
                 items=pairs.numel)  # fmt: skip
    return joined([run, under("aten::sum", reduction(pairs, (len(pairs.shape) - 3,), call.sms))])


_FORWARD = ("neg", "mul_", "exp_", "log1p_")
_BACKWARD = ("neg", "mul", "exp", "mul", "mul_", "add_", "div_", "mul_")


def soft_margin(call: Call) -> Steps:
    """Four operations element by element, then the mean."""
    one = like(call.tensors[:2], call.first.dtype)
    return joined([*_each(_FORWARD, one), reduced_loss(call, one)])


def soft_margin_backward(call: Call) -> Steps:
    """Eight operations element by element."""
    return joined(_each(_BACKWARD, like(call.tensors[1:3], call.at(1).dtype)))


def _each(names: tuple[str, ...], one: Tensor) -> list[Steps]:
    return [under(f"aten::{name}", pointwise("", one, [one, one])) for name in names]
