"""Data types as traces write them, by the short words that kernel identities use, and their sizes."""

from collections.abc import Iterable, Mapping
from typing import Final

ELEMENT_BYTES: Final[Mapping[str, int]] = {
    "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8,
    "uint16": 2, "uint32": 4, "uint64": 8,
    "fp4": 1, "fp8": 1, "fp8-e4m3": 1, "fp8-e5m2": 1, "fp8-e8m0": 1,
    "bf16": 2, "fp16": 2, "fp32": 4, "fp64": 8,
    "complex32": 4, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Short word -> bytes an element; "fp4" are PyTorch's elements of two numbers each."""

WORDS: Final[Mapping[str, str]] = {
    "bool": "bool",
    "unsigned char": "uint8",
    "signed char": "int8",
    "short": "int16",
    "short int": "int16",
    "int": "int32",
    "long": "int64",
    "long int": "int64",
    "__int64": "int64",
    "long long": "int64",
    "unsigned short": "uint16",
    "short unsigned int": "uint16",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "long unsigned int": "uint64",
    "unsigned __int64": "uint64",
    "float": "fp32",
    "double": "fp64",
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "c10::Float4_e2m1fn_x2": "fp4",
    "c10::Float8_e4m3fn": "fp8-e4m3",
    "c10::Float8_e5m2": "fp8-e5m2",
    "c10::Float8_e4m3fnuz": "fp8-e4m3",
    "c10::Float8_e5m2fnuz": "fp8-e5m2",
    "c10::Float8_e8m0fnu": "fp8-e8m0",
    "c10::complex<c10::Half>": "complex32",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}
"""As ``Input type`` writes it (C++ names, which differ between compilers) -> short word."""

_SCALAR_TYPES: Final[Mapping[int, str]] = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "fp16", 6: "fp32", 7: "fp64",
    8: "complex32", 9: "complex64", 10: "complex128", 11: "bool", 15: "bf16", 23: "fp8-e5m2",
    24: "fp8-e4m3", 25: "fp8-e5m2", 26: "fp8-e4m3",
}  # fmt: skip
"""c10::ScalarType as ``Concrete Inputs`` states a dtype argument -> short word."""

_INTEGERS: Final = frozenset(
    {"bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"}
)
_LADDER: Final = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "fp4", "fp8-e8m0",
    "fp8-e5m2", "fp8-e4m3", "fp8", "fp16", "bf16", "fp32", "fp64", "complex32", "complex64", "complex128",
)  # fmt: skip
"""Types in the order in which the later one wins."""


def is_floating(word: str) -> bool:
    """Whether a type is a floating-point or complex one."""
    return word not in _INTEGERS


def floating_type(types: object) -> str | None:
    """Return the floating-point type of the first of a call's ``Input type`` that has one."""
    words = (WORDS.get(kind) for kind in types if isinstance(kind, str)) if isinstance(types, list) else ()
    return next((word for word in words if word is not None and is_floating(word)), None)


def stated_dtype(value: str) -> str | None:
    """Return the type that a dtype argument was stated as; None where it was left out or is not known."""
    return _SCALAR_TYPES.get(int(value)) if value.isascii() and value.isdigit() else None


def promoted(arrays: Iterable[str], scalars: Iterable[str] = ()) -> str | None:
    """Return the type of an operation's result; None where nothing has a type.

    ``scalars`` are those of operands without dimensions: they count only where they are of a higher kind
    (a float among integers), and then, being mostly Python's numbers, as float32 or int64.
    """
    ranked = sorted(arrays, key=_LADDER.index)
    lone = sorted(scalars, key=_LADDER.index)
    if not ranked:
        return lone[-1] if lone else None
    best = ranked[-1]
    if best == "bf16" and "fp16" in ranked:
        return "fp32"
    if not is_floating(best) and any(is_floating(word) for word in lone):
        return "fp32"
    if best == "bool" and lone and lone[-1] != "bool":
        return "int64"
    return best


def as_floating(word: str) -> str:
    """Return the type of a result that cannot be an integer, such as a quotient."""
    return word if is_floating(word) else "fp32"
