"""Writing by tensors of indices or masks with a reduction: what ATen composes around the one kernel.

Sources: `scatter_reduce_two` in ATen/native/TensorAdvancedIndexing.cpp, `index_reduce_func_cuda_impl` in
ATen/native/cuda/Indexing.cu and `launch_masked_scatter_kernel` in ATen/native/cuda/IndexKernel.cu.
"""

from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.steps import (
    Call,
    Steps,
    contiguous,
    copied,
    fresh,
    joined,
    kernel,
    like,
    pointwise,
    under,
)
from tracehunch.predict.ops.tensor import Tensor


def reduce_by_index(call: Call) -> Steps:
    """Copy what is there, clear what does not count, reduce with one kernel; divide a sum for a mean."""
    one, index, source = call.first, call.at(1), call.at(2)
    rows = call.name.startswith("index")
    out = one if call.name.endswith("_") else like([one], one.dtype)
    before = () if out is one else copied(one, out)
    if index.numel == 0 or source.numel == 0:
        return before
    cleared = () if call.option("include_self", default=True) else _cleared(out, index, rows=rows)
    mean = call.option("reduce") == "mean"
    return joined([before, cleared, _written(out, source), _divided(out, source, rows=rows) if mean else ()])


def _cleared(out: Tensor, index: Tensor, *, rows: bool) -> Steps:
    name = "aten::index_fill_" if rows else "aten::scatter_"
    return under(name, kernel("", "scatter", "scatter", index.nbytes, dtype=out.dtype, items=index.numel))


def _written(out: Tensor, source: Tensor) -> Steps:
    moved = 2 * source.numel * out.itemsize
    return kernel("", "scatter", "scatter", moved, dtype=out.dtype, items=source.numel)


def _divided(out: Tensor, source: Tensor, *, rows: bool) -> Steps:
    """Count by adding up ones, take no count as one, and divide."""
    name = "aten::index_add_" if rows else "aten::scatter_add_"
    flags = fresh(out.shape, "bool")
    return joined(
        [
            fill_kernel(fresh(source.shape, source.dtype)),
            fill_kernel(fresh(out.shape, out.dtype)),
            under(name, _written(out, source)),
            under("aten::eq", pointwise("CompareEqFunctor", flags, [out])),
            under("aten::masked_fill_", pointwise("masked_fill_kernel", out, (out, flags), flops=0)),
            under("aten::div_", pointwise("DivFunctor", out, [out, out])),
        ]
    )


def masked_scatter(call: Call) -> Steps:
    """Add up the mask to number its places, check that there are values enough, and write them."""
    one, mask, source = call.first, call.at(1), call.at(2)
    out = one if call.name.endswith("_") else fresh(one.shape, one.dtype)
    before = () if out is one else copied(one, out)
    if one.numel == 0:
        return before
    flags, packed = contiguous(mask.expanded(one.shape))
    places = fresh(one.shape, "int64")
    return joined(
        [
            before,
            contiguous(source)[0],
            flags,
            kernel("DeviceScanInitKernel", "scan", "tiny", 0, library="cub"),
            kernel(
                "DeviceScanKernel", "scan", "select", packed.nbytes + places.nbytes, items=one.numel,
                library="cub",
            ),
            kernel("masked_scatter_size_check", "assert", "tiny", 0),
            pointwise("", out, [out, packed, places]),
        ]
    )  # fmt: skip
