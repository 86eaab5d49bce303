"""Data types by the short words that kernel identities use, and their sizes."""

from functools import lru_cache
from typing import Final

from tracehunch.errors import GuessError

SIZES: Final = {
    "bf16": 2,
    "fp16": 2,
    "fp32": 4,
    "fp64": 8,
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "fp8": 1,
}
"""Short word -> bytes an element."""

_WORDS: Final = {
    "bfloat16": "bf16",
    "half": "fp16",
    "float16": "fp16",
    "float": "fp32",
    "float32": "fp32",
    "double": "fp64",
    "float64": "fp64",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}

HALF: Final = frozenset({"bf16", "fp16"})
"""The 16-bit floating types."""

FLOATING: Final = frozenset({"bf16", "fp16", "fp32", "fp64", "fp8"})


COMPLEX: Final = {"complex32": 4, "complex64": 8, "complex128": 16}
"""Complex types, by torch's names -> bytes an element: tensors hold them, no product is known in them."""


@lru_cache(maxsize=256)
def dtype_word(name: str) -> str:
    """Return the short word for a data type as torch, traces or kernel names write it.

    Raises:
        GuessError: no such type is known.

    """
    plain = name.strip().removeprefix("torch.").removeprefix("c10::").lower()
    word = _WORDS.get(plain, plain)
    if word not in SIZES:
        raise GuessError(f"data type {name!r} is not known", "", f"use {', '.join(sorted(SIZES))}")
    return word


def stored_word(name: str) -> str:
    """Return the same for what a tensor may hold, which may be complex.

    Raises:
        GuessError: no such type is known.

    """
    plain = name.strip().removeprefix("torch.")
    return plain if plain in COMPLEX else dtype_word(name)


def size_of(dtype: str) -> int:
    """Return the bytes of one element of a short word's type."""
    return COMPLEX.get(dtype) or SIZES[dtype]
