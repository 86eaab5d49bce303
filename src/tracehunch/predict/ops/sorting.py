"""Sorting and selecting the largest."""

from typing import Final

from tracehunch.predict.ops.steps import (
    COPY,
    Call,
    Steps,
    copied,
    fresh,
    joined,
    kernel,
    memcpy,
    memset,
    pointwise,
    under,
    unknown,
)

_INT64: Final = 8
_IN_PLACE: Final = 4096  # longest line that is sorted in place, in one block
_BITONIC: Final = 32  # up to here by a bitonic network, above by radix
_SEGMENTS: Final = 128  # lines from which on each is sorted as a segment of its own
_SINGLE_TILE: Final = 2304  # pairs of 64-bit numbers that one block sorts
_DIGIT: Final = 8  # bits that a pass of the radix sort orders by

# Lines, and how long they must be for topk to set several blocks to each.
_MULTIBLOCK: Final = ((20, 20_000), (40, 10_000), (80, 8_000), (199, 5_000), (799, 3_000), (4000, 800))
_MULTIBLOCK_ELSE: Final = 400


def sort(call: Call) -> Steps:
    """Sort along a dimension: short lines in place, long ones by CUB's radix sort."""
    one = call.first
    dim = call.option("dim", -1)
    length = one.size(dim)
    if one.numel == 0:
        return ()
    lines = one.numel // length
    last = dim % max(len(one.shape), 1) == len(one.shape) - 1 if one.shape else True
    if length <= _IN_PLACE:
        return _sorted_in_place(
            one.numel, one.nbytes, length, lines, one.dtype, stable=bool(call.option("stable"))
        )
    bits = 8 * one.itemsize
    indices = one.numel * _INT64
    pack = under(COPY, memcpy("dtod", one.nbytes))
    number = kernel("sort_fill_kernel", "index", "fill", indices)
    moved = 2 * (one.nbytes + indices)
    if lines == 1:
        return joined([pack, number, onesweep(bits, moved)])
    if lines < _SEGMENTS:
        inner = joined([pack, number, onesweep(bits, moved), onesweep(_DIGIT, moved)])
        return joined([inner, kernel("sort_postprocess_kernel", "sort", "sort", moved)])
    passes = kernel("DeviceSegmentedRadixSortKernel", "sort", "sort", moved, library="cub")
    number_of_passes = 3 if bits <= 16 else 6  # bits of a key
    middle = joined([number, passes * number_of_passes])
    if last:
        return joined([pack, middle])
    turned = fresh((lines, length), one.dtype)
    strided = kernel("direct_copy_kernel_cuda", "copy", "transposed", 2 * one.nbytes, dtype=turned.dtype)
    back = kernel("direct_copy_kernel_cuda", "copy", "transposed", 2 * indices, dtype="int64")
    return joined([pack, strided, middle, strided, back])


def _sorted_in_place(numel: int, nbytes: int, length: int, lines: int, dtype: str, *, stable: bool) -> Steps:
    """Copy keys, number the elements, spread the numbers over all lines, and sort both."""
    del stable
    keys = under(COPY, memcpy("dtod", nbytes))
    number = under("aten::arange", kernel("elementwise_kernel_with_index", "index", "fill", length * _INT64))
    spread = memcpy("dtod", numel * _INT64)
    if lines > 1:
        spread = kernel("direct_copy_kernel_cuda", "copy", "strided", numel * _INT64)
    spread, back = under(COPY, spread), under(COPY, memcpy("dtod", numel * _INT64))
    if length == 1:
        return joined([keys, number, spread, back])
    text = "bitonicSortKVInPlace" if length <= _BITONIC else "radixSortKVInPlace"
    run = kernel(text, "sort", "sort_in_place", 2 * (nbytes + numel * _INT64), dtype=dtype, serial=length)
    return joined([keys, number, spread, back, run])


def onesweep(bits: int, moved: int) -> Steps:
    """Count the digits once, then order by each; every pass has its counters cleared."""
    passes = bits // _DIGIT
    head = [
        memset(), memset(),
        kernel("DeviceRadixSortHistogramKernel", "sort", "select", moved // 2, library="cub"),
        kernel("DeviceRadixSortExclusiveSumKernel", "scan", "tiny", 0, library="cub"),
    ]  # fmt: skip
    one = joined([memset(), kernel("DeviceRadixSortOnesweepKernel", "sort", "sort", moved, library="cub")])
    return joined([*head, one * passes])


def sorted_keys(count: int, largest: int) -> Steps:
    """Sort pairs of 64-bit numbers up to a largest one: few in a single block, else by as many digits."""
    if count <= _SINGLE_TILE:
        return kernel("DeviceRadixSortSingleTileKernel", "sort", "sort", 4 * count * _INT64, library="cub")
    return onesweep(-(-largest.bit_length() // _DIGIT) * _DIGIT, 4 * count * _INT64)


def topk(call: Call) -> Steps:
    """Select the k largest of each line: one block a line, or passes with many blocks; then sort them."""
    one = call.first
    dim = call.option("dim", -1)
    k = int(call.option("k", 1))
    length = one.size(dim)
    if one.numel == 0 or k == 0:
        return ()
    lines = one.numel // length
    last = not one.shape or dim % len(one.shape) == len(one.shape) - 1
    if not last:
        return joined(
            [copied(one, fresh(one.shape, one.dtype)), _selected(one.nbytes, one.dtype, lines, length, k)]
        )
    return joined([
        pointwise("direct_copy_kernel_cuda", fresh(one.shape, one.dtype), [one], flops=0, algorithm="copy")
        if not one.is_contiguous else (),
        _selected(one.nbytes, one.dtype, lines, length, k),
        _ordered(lines, k, one.itemsize) if call.option("sorted") is not False and k > 1 else (),
    ])  # fmt: skip


def _selected(nbytes: int, dtype: str, lines: int, length: int, k: int) -> Steps:
    if not _many_blocks(lines, length):
        return kernel("gatherTopK", "topk", "topk", nbytes, dtype=dtype, serial=length)
    elements = lines * length
    passes = nbytes // elements  # bytes of an element: a pass orders by eight bits
    digits = lines << _DIGIT
    count = joined([
        kernel("computeBlockDigitCounts", "topk", "topk_pass", nbytes, dtype=dtype, items=elements),
        kernel("computeDigitCumSum", "scan", "digits", 4 * digits, items=digits),
        kernel("computeBlockwiseWithinKCounts", "topk", "digits", 4 * digits, items=digits),
    ])  # fmt: skip
    scans = joined([
        kernel("DeviceScanByKeyInitKernel", "scan", "tiny", 0, library="cub"),
        kernel("DeviceScanByKeyKernel", "scan", "tiny", 0, library="cub"),
    ])  # fmt: skip
    end = kernel("computeBlockwiseKthCounts", "topk", "tiny", 0)
    moved = nbytes + lines * k * (passes + _INT64)
    gathered = kernel("gatherTopK", "topk", "topk_pass", moved, dtype=dtype, items=2 * elements)
    return joined(
        [kernel("fill", "fill", "tiny", 0), memset(), memset(), count * passes, end, scans * 2, gathered]
    )


def _many_blocks(lines: int, length: int) -> bool:
    for most, least in _MULTIBLOCK:
        if lines <= most:
            return length >= least
    return length >= _MULTIBLOCK_ELSE


def _ordered(lines: int, k: int, itemsize: int) -> Steps:
    text = "bitonicSortKVInPlace" if k <= _BITONIC else "radixSortKVInPlace"
    return kernel(text, "sort", "sort_in_place", lines * k * (itemsize + _INT64) * 2, serial=k)


def not_modelled(call: Call) -> Steps:
    """Answer nothing: the number of kernels depends on values or was not worked out."""
    return unknown(f"the kernels of {call.name} were not worked out")
