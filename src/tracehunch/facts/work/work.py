"""Work: what one call of an op has to compute and to move."""

from collections.abc import Iterable
from dataclasses import dataclass

from tracehunch.facts.work.dtypes import ELEMENT_BYTES
from tracehunch.facts.work.inputs import Operand


@dataclass(frozen=True, slots=True)
class Work:
    """FLOPs and least bytes of one call; None where its inputs do not tell.

    ``dtype`` is the short word of the format that is multiplied, "" where nothing is.
    """

    flops: int | None
    bytes: int | None
    dtype: str = ""


def moved(*read: Operand | None) -> int:
    """Return the bytes in memory of operands, each read or written once.

    Those without dimensions, mostly Python's numbers, are none.
    """
    return sum(one.stored_bytes for one in read if one is not None and one.shape)


def elements(numel: int, dtype: str) -> int:
    """Return the bytes of so many elements of a type.

    Raises:
        ValueError: less than none, as of sizes that an op does not take.

    """
    if numel < 0:
        raise ValueError(f"{numel} elements")
    return numel * ELEMENT_BYTES[dtype]


def moving(parts: Iterable[int]) -> Work:
    """Return work without FLOPs: the sum of bytes."""
    return Work(0, sum(parts))
