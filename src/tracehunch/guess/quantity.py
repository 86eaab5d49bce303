"""Numbers with units as people write them: ``200us``, ``1.2 ms``, ``1.5GiB``, ``30%``, ``989 TFLOP/s``."""

import re
from typing import Final

from tracehunch.errors import GuessError

Number = int | float

_TIME: Final[dict[str, Number]] = {"ns": 0.001, "us": 1, "µs": 1, "μs": 1, "ms": 1_000, "s": 1_000_000}
_BYTES: Final[dict[str, Number]] = {
    "B": 1,
    **{prefix + "B": 1_000 ** (power + 1) for power, prefix in enumerate("KMGT")},
    **{prefix + "iB": 1_024 ** (power + 1) for power, prefix in enumerate("KMGT")},
    "kB": 1_000,
    "bytes": 1,
}
_FLOPS: Final[dict[str, Number]] = {
    spelling: 1_000**power
    for power, prefix in enumerate(["", "K", "M", "G", "T", "P"])
    for spelling in (f"{prefix}FLOP", f"{prefix}FLOPs", f"{prefix}FLOPS")
}

SPELLINGS: Final[dict[str, dict[str, Number]]] = {
    "us": _TIME,
    "bytes": _BYTES,
    "bytes/s": {f"{name}/s": factor for name, factor in _BYTES.items()},
    "flop": _FLOPS,
    "flops": _FLOPS,
    "flop/s": {**_FLOPS, **{f"{name}/s": factor for name, factor in _FLOPS.items()}},
    "ratio": {"%": 0.01},
    "percent": {"%": 1},
    "count": {},
}
"""Unit of a fact -> spelling -> how many of the fact's unit one of it is."""

EXAMPLES: Final[dict[str, str]] = {
    "us": "200us",
    "bytes": "1.5GiB",
    "bytes/s": "3.2TB/s",
    "flop/s": "600TFLOP/s",
}
"""What to write for keys of a unit, for error messages."""

_QUANTITY = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)\s*(?P<unit>[^\s0-9.]\S*)?"
)


def parse_quantity(text: str, unit: str, default_unit: str = "") -> Number:
    """Return the number in the fact's unit; an int where the text and the factor are whole.

    ``default_unit`` is the spelling to take where the text has none. Times must say theirs.

    Raises:
        GuessError: the text is no number, or its unit does not fit the key's.

    """
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        raise GuessError(f"{text.strip()!r} is not a number", "", f"write it like {example(unit)}")
    number, spelling = found["number"], found["unit"] or default_unit
    value: Number = int(number) if number.isdigit() else float(number)
    if not spelling:
        if unit == "us":
            raise GuessError(
                f"{number} has no unit", "a time needs one", f'write "{number}us" or "{number}ms"'
            )
        return value
    return value * _factor(spelling, unit)


def spelling_of(text: str) -> str:
    """Return the unit a number was written with, "" for none; for ranges such as ``100..200us``."""
    found = _QUANTITY.fullmatch(text.strip())
    return "" if found is None else found["unit"] or ""


def _factor(spelling: str, unit: str) -> Number:
    known = SPELLINGS.get(unit, {})
    if spelling in known:
        return known[spelling]
    allowed = ", ".join(known) if known else "no unit"
    raise GuessError(f"unit {spelling!r} does not fit", f"this key takes {allowed}")


def format_quantity(value: Number, unit: str) -> str:
    """Return the text that ``parse_quantity`` reads back as exactly this number (and type)."""
    suffix = "us" if unit == "us" else ""
    return f"{value!r}{suffix}"


def example(unit: str) -> str:
    """How a value of this unit is written."""
    return EXAMPLES.get(unit, "5")
