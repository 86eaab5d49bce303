"""The grammar of one expectation: a value as written -> relation and expected value, and back.

======================  ============================================================
written                 means
======================  ============================================================
``5``                   exactly 5 (counts, bytes); of a measured key (times, ratios) about 5, as ``~5``
``"== 5"``              exactly 5, also of a measured key
``"<= 5"`` ``< >= >``   a bound
``"4..6"``              from 4 to 6, both included
``"~5"``                within 10 %
``"flash"``             exactly this text
``["a", "b"]``          exactly these texts; for ``dominant``: these ops lead, in order;
                        for ``fused``: one generated kernel holds all of these ops
======================  ============================================================

Numbers of time keys need a unit (``"200us"``, ``"1.2ms"``), those of byte keys may have one (``"1.5GiB"``).
"""

import re
import sys
from collections.abc import Sequence
from typing import Final, cast, get_args

from tracehunch.errors import GuessError
from tracehunch.facts.model import Value
from tracehunch.guess.model import Claim, Relation
from tracehunch.guess.quantity import Number, example, format_quantity, parse_quantity, spelling_of

Expected = Value | tuple[float, float]

MEASURED_UNITS: Final = frozenset({"us", "ratio", "percent", "bytes/s", "flop/s"})
"""Units of what is measured rather than counted: nobody who writes 200us means to the nanosecond."""

LEADS_KEYS: Final = frozenset({"dominant"})
MERGED_KEYS: Final = frozenset({"fused"})

_BOUND = re.compile(r"(?P<relation><=|>=|==|<|>|=|~|≤|≥|≈|!=|≠)(?P<rest>.*)", re.DOTALL)
_RANGE = re.compile(r"(?P<low>.*?)\s*(?:\.\.|…)\s*(?P<high>.*)", re.DOTALL)
_SPELLED: Final[dict[str, Relation]] = {"≤": "<=", "≥": ">=", "≈": "~", "=": "=="}


def parse_value(key: str, value: object, unit: str, *, default_unit: str = "") -> tuple[Relation, Expected]:
    """Relation and expected value of what was written for a key whose fact has this unit.

    Raises:
        GuessError: it cannot be understood; the text says why, and what to write.

    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str, list, tuple)):
        raise GuessError(f"{value!r} is {_kind(value)}", "", _write(unit, key))
    if isinstance(value, (list, tuple)):
        return _texts(key, value, unit)
    if unit == "text":
        return _texts(key, [value], unit)
    if isinstance(value, (int, float)):
        return _bare(_checked_number(value, unit, default_unit), unit)
    return _parse_text(value, unit, default_unit)


def format_value(claim: Claim) -> int | str | tuple[str, ...]:
    """Return what to write so that ``parse_value`` gives this claim's relation and expected value."""
    expected, unit = claim.expected, claim.unit
    if isinstance(expected, str):
        return expected if claim.relation == "==" else (expected,)
    if isinstance(expected, tuple):
        if claim.relation != "in":
            return cast("tuple[str, ...]", expected)
        low, high = cast("tuple[float, float]", expected)
        return f"{format_quantity(low, unit)}..{format_quantity(high, unit)}"
    if claim.relation == "==" and isinstance(expected, int) and unit not in MEASURED_UNITS:
        return expected
    relation = claim.relation
    return f"{relation}{'' if relation == '~' else ' '}{format_quantity(expected, unit)}"


def _parse_text(text: str, unit: str, default_unit: str) -> tuple[Relation, Expected]:
    bound = _BOUND.fullmatch(text.strip())
    if bound is not None:
        relation = _SPELLED.get(bound["relation"], bound["relation"])
        if relation not in get_args(Relation):
            raise GuessError(
                f"{relation!r} is no relation here",
                "",
                f'use {", ".join(get_args(Relation)[:5])}, "4..6" or "~5"',
            )
        number = parse_quantity(bound["rest"], unit, default_unit)
        return cast("Relation", relation), _whole(number, unit) if relation == "==" else number
    span = _RANGE.fullmatch(text.strip())
    if span is not None:
        return "in", _parse_range(span["low"], span["high"], unit, default_unit)
    if re.fullmatch(r"\s*[\d.]+\s*-\s*[\d.]+\s*\w*\s*", text):
        raise GuessError(
            f"{text!r} is not a number", "", f'write a range as "{text.replace("-", "..").replace(" ", "")}"'
        )
    return _bare(parse_quantity(text, unit, default_unit), unit)


def _parse_range(low_text: str, high_text: str, unit: str, default_unit: str) -> tuple[float, float]:
    if not low_text or not high_text:
        raise GuessError(
            f'"{low_text}..{high_text}" is open',
            "",
            f'write ">= {low_text}"' if low_text else f'write "<= {high_text}"',
        )
    low = parse_quantity(low_text, unit, spelling_of(high_text) or default_unit)
    high = parse_quantity(high_text, unit, default_unit)
    if low > high:
        raise GuessError(
            f'"{low_text}..{high_text}" is empty',
            "the lower end comes first",
            f'write "{high_text}..{low_text}"',
        )
    return low, high


def _bare(number: Number, unit: str) -> tuple[Relation, Expected]:
    return ("~", number) if unit in MEASURED_UNITS else ("==", _whole(number, unit))


def _whole(number: Number, unit: str) -> Number:
    """Return the number as an int where the key counts something, so that 5.0 and 5 are the same claim."""
    if unit in MEASURED_UNITS or isinstance(number, int):
        return number
    if not number.is_integer():
        raise GuessError(
            f"{number} is not whole",
            "the key is a count",
            f'write {int(number)}, or "{int(number)}..{int(number) + 1}"',
        )
    return int(number)


def _checked_number(value: Number, unit: str, default_unit: str) -> Number:
    if not 0 <= value <= sys.float_info.max:
        raise GuessError(f"{value} is out of range", "values are finite and not negative")
    return value if unit != "us" else parse_quantity(repr(value), unit, default_unit)


def _texts(key: str, value: Sequence[object], unit: str) -> tuple[Relation, Expected]:
    """One text or several."""
    if unit != "text":
        raise GuessError(f"{list(value)!r} is a list", "the key is a number", _write(unit, key))
    texts = tuple(text for text in value if isinstance(text, str) and text.strip())
    if not texts or len(texts) != len(value):
        raise GuessError(
            f"{value[0] if len(value) == 1 else list(value)!r} is not text", "", _write(unit, key)
        )
    if key in LEADS_KEYS:
        return "leads", texts
    if key in MERGED_KEYS:
        return "merged", tuple(dict.fromkeys(texts))
    return "==", texts[0] if len(texts) == 1 else texts


def _write(unit: str, key: str) -> str:
    if key in LEADS_KEYS:
        return 'write the op names in order, as ["aten::softmax", "aten::bmm"]'
    if key in MERGED_KEYS:
        return 'write the ops of one kernel, as ["gelu", "mul"]; of several, as [["gelu", "mul"], ["add"]]'
    if unit == "text":
        return 'write text, as "flash"'
    shown = example(unit)
    return f'write {shown if unit == "count" else repr(shown)}, "<= {shown}" or "~{shown}"'


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, dict):
        return "a table"
    return f"a {type(value).__name__}"
