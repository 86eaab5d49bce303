"""Matrix products: the kernels that cuBLAS runs for them, with memsets, split-K reductions and time."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tracehunch.guess.model import Confidence
from tracehunch.predict.activities import COUNTED, Activities, KernelGuess, TimeRange
from tracehunch.predict.ops.dtypes import HALF, dtype_word
from tracehunch.predict.ops.gemm.branches import outcome
from tracehunch.predict.ops.gemm.nvjet import choose
from tracehunch.predict.ops.gemm.product import Product, alignment_of
from tracehunch.predict.ops.gemm.times import nvjet_time, other_time

if TYPE_CHECKING:
    from tracehunch.predict.environment import Environment

_MEASURED: Final = ((9, 0), (2, 11))  # compute capability and torch of the products that were measured
_HOPPER: Final = 9
_SIMT: Final = frozenset({"fp32", "fp64"})
_NARROW: Final = frozenset({"fp8", "int8"})
"""Data types of a byte, which tensor cores alone multiply."""
_SURE: Final = 0.9
_LIKELY: Final = 0.7
_LETTERS: Final = {"bf16": "tst", "fp16": "hsh"}


def predict_gemm(
    env: "Environment",
    *,
    m: int,
    n: int,
    k: int,
    batch: int = 1,
    dtype: str,
    transposed_a: bool = False,
    transposed_b: bool = False,
    bias: bool = False,
    alignment: int | None = None,
    op: str = "aten::bmm",
) -> Activities:
    """Return what a product C[batch, m, n] = A[batch, m, k] @ B[batch, k, n] runs.

    Dimensions are PyTorch's, row-major. `transposed_a` and `transposed_b` say that the operand's memory
    holds the transpose: `q @ k.transpose(-2, -1)` of contiguous q and k has `transposed_b`. `alignment` is
    the largest power of two, in elements, that divides every stride between rows and batches and every
    storage offset; from contiguous operands where it is not given. `bias` is added by the same call
    (`addmm` and `linear` with a vector). Nothing is copied here: operands whose memory cuBLAS cannot read are
    copied by the op before (see `predict_op`).

    Raises:
        GuessError: an unknown data type.

    """
    kind = dtype_word(dtype)
    if min(m, n, k, batch) < 1:
        return Activities()
    if alignment is None:
        alignment = alignment_of(m=m, n=n, k=k, turned_a=transposed_a, turned_b=transposed_b)
    product = Product(
        m, n, k, batch, kind, transposed_a, transposed_b, alignment, route="lt" if bias else "cublas"
    )
    return predict_product(env, product, op)


def predict_product(env: "Environment", product: Product, op: str) -> Activities:
    """Return what a product runs."""
    if env.device == "cpu":
        return Activities(flops=product.flops, bytes=product.bytes, reasons=("runs on the CPU",))
    if in_tf32(env, product):
        return _in_tf32(env, product, op)
    if env.device != "cuda" or env.compute_capability is None or product.dtype not in (HALF | _SIMT):
        return _unmeasured(env, product, op)
    if env.compute_capability[0] != _HOPPER or product.dtype == "fp64":
        return _unmeasured(env, product, op)
    measured = (env.compute_capability, env.torch) == _MEASURED
    made = _nvjet(env, product, op) if product.aligned else _older(env, product, op)
    if measured:
        return made
    return made.because(COUNTED, confidence="medium")


def in_tf32(env: "Environment", product: Product) -> bool:
    """Whether a product of float32 runs on tensor cores: TF32 is allowed, and the GPU has it."""
    allowed = env.tf32 and env.device == "cuda" and product.dtype == "fp32"
    return allowed and env.gpu is not None and env.gpu.matrix_peak("tf32") is not None


def _in_tf32(env: "Environment", product: Product, op: str) -> Activities:
    """Return one kernel, as for all whose choices were not measured, at the peak of TF32."""
    assert env.gpu is not None
    made = _unmeasured(env, product, op)
    kernel = KernelGuess("", "cublas", "gemm", "tensor-core", "fp32", op)
    peak = env.gpu.matrix_peak("tf32")
    time = other_time(product, 1, env.gpu, measured=False, peak=peak)
    return replace(made, kernels=(kernel,), time=time, reasons=(f"in TF32: {made.reasons[0]}",))


def _nvjet(env: "Environment", product: Product, op: str) -> Activities:
    choice = choose(product, 132 if env.gpu is None else env.gpu.sms)
    first, second = choice.tile
    name = f"nvjet_sm90_{_LETTERS[product.dtype]}_{first}x{second}"
    kernels = [KernelGuess(name, "cublas", "gemm", "tensor-core", product.dtype, op)]
    reason = (
        f"about {choice.tiles} tiles of {first}x{second}, {choice.sms} at a time: "
        f"{'a memset clears the tile counter' if choice.memset else 'no memset up to two rounds'}"
    )
    if choice.splits > 1:
        kernels.append(KernelGuess("splitKreduce_kernel", "cublas", "splitk-reduce", "none", None, op))
        reason = f"{choice.tiles} tiles leave SMs idle: split along K in {choice.splits}, and added up"
    return Activities(
        kernels=tuple(kernels),
        memsets=int(choice.memset),
        flops=product.flops,
        bytes=product.bytes,
        time=None if env.gpu is None else nvjet_time(product, choice, env.gpu),
        confidence=_confidence(choice.certainty),
        reasons=(reason,),
    )


def _older(env: "Environment", product: Product, op: str) -> Activities:
    expected = outcome(product)
    half = product.dtype in HALF
    unit = "cuda-core" if not half else "unknown" if product.is_vector else "tensor-core"
    library = "cublas" if product.is_vector or not half else "cutlass"
    kernels = [KernelGuess("", library, "gemm", unit, product.dtype, op)]
    kernels += [KernelGuess("", "cublas", "splitk-reduce", "none", None, op)] * (expected.kernels - 1)
    why = "strides are no multiples of 16 bytes" if half else "32-bit products run on CUDA cores"
    ran = "one kernel" if expected.kernels == 1 else f"{expected.kernels} kernels"
    reason = f"{why}; of products like it {expected.certainty:.0%} ran {ran}"
    return Activities(
        kernels=tuple(kernels),
        memsets=expected.memsets,
        flops=product.flops,
        bytes=product.bytes,
        time=None if env.gpu is None else other_time(product, expected.kernels, env.gpu, measured=True),
        confidence=_confidence(expected.certainty),
        reasons=(reason,),
    )


def _unmeasured(env: "Environment", product: Product, op: str) -> Activities:
    """Return one kernel: GPUs, libraries and data types whose choices were not measured."""
    older = (
        env.device == "cuda" and env.compute_capability is not None and env.compute_capability[0] < _HOPPER
    )
    # only nvjet's tile counter is cleared by a memset, and nvjet takes no fp64 (0 in 40 of 40 calls measured)
    memsets = 0 if older or (env.device == "cuda" and product.dtype == "fp64") else None
    reason = "one kernel is usual; whether it is split along K was not measured here"
    if not older:
        reason += ", nor whether a memset comes with it"
    unit = "unknown"
    if env.device == "cuda":
        unit = "tensor-core" if product.dtype in HALF | _NARROW else "cuda-core"
    time: TimeRange | None = None
    if env.gpu is not None and (product.dtype not in _NARROW or env.gpu.matrix_peak(product.dtype)):
        time = other_time(product, 1, env.gpu, measured=False)
    return Activities(
        kernels=(KernelGuess("", "cublas" if env.device == "cuda" else "", "gemm", unit, product.dtype, op),),
        memsets=memsets,
        flops=product.flops,
        bytes=product.bytes,
        time=time,
        confidence="medium" if older else "low",
        reasons=(reason,),
    )


def _confidence(certainty: float) -> Confidence:
    if certainty >= _SURE:
        return "high"
    return "medium" if certainty >= _LIKELY else "low"
