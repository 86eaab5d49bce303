"""A matrix product as cuBLAS is asked for it."""

from dataclasses import dataclass
from typing import Final, Literal

from tracehunch.facts.work import product_bytes, product_flops
from tracehunch.predict.ops.dtypes import HALF, size_of

TMA_BYTES: Final = 16
"""Strides must be multiples of this for Hopper's tensor memory accelerator, and so for nvjet kernels."""


@dataclass(frozen=True, slots=True)
class Product:
    """C[batch, m, n] = A[batch, m, k] @ B[batch, k, n], row-major.

    `turned_a` and `turned_b`: the operand's memory holds the transpose. `alignment` is the largest power of
    two, in elements, that divides all strides and offsets (1 to 8 matter). `route` is the library call:
    "lt" for those with a fused bias, "cublas" for all others.
    """

    m: int
    n: int
    k: int
    batch: int
    dtype: str
    turned_a: bool
    turned_b: bool
    alignment: int
    route: Literal["cublas", "lt"]

    @property
    def flops(self) -> int:
        """A multiply and an add for each element of the inner dimension."""
        return product_flops(self.m, self.n, self.k, self.batch)

    @property
    def bytes(self) -> int:
        """Both operands read and the product written, once each."""
        return product_bytes(self.m, self.n, self.k, size_of(self.dtype), self.batch)

    @property
    def is_vector(self) -> bool:
        """Whether one side of the product has a single row."""
        return self.m == 1 or self.n == 1

    @property
    def aligned(self) -> bool:
        """Whether the memory accelerator can read and write all three matrices."""
        return self.dtype in HALF and self.alignment * size_of(self.dtype) >= TMA_BYTES


def alignment_of(*, m: int, n: int, k: int, turned_a: bool, turned_b: bool) -> int:
    """Return the alignment in elements of contiguous operands and product.

    A product with a single row or column is read as a matrix and a vector: the length of both matters, the
    stride of the single row does not.
    """
    of_matrices = (m if turned_a else k, k if turned_b else n, n)
    return min(length & -length for length in ((k, max(m, n)) if 1 in (m, n) else of_matrices))
