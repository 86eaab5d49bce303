"""Claims from what people write: a mapping (hunch.toml, Python, marker arguments) or a typed line."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast, get_args

from tracehunch.errors import GuessError
from tracehunch.facts.vocabulary import KEYS
from tracehunch.guess.model import Claim, Confidence, Who
from tracehunch.guess.relation import LEADS_KEYS, MERGED_KEYS, parse_value
from tracehunch.guess.words import fact_word

NOT_KEYS: Final = ("why", "confidence", "who")
"""What a table of claims may hold beside keys of the vocabulary."""

SHORT: Final[Mapping[str, str]] = {"backend": "sdpa.backend", "time": "gpu_time", "dominates": "dominant"}
"""Words accepted at the prompt beside the keys themselves."""

_LISTS: Final = LEADS_KEYS | MERGED_KEYS

_TYPED = re.compile(r"\s*(?P<key>[A-Za-z_][\w.]*)(?![\w.])\s*(?:[:=](?!=))?\s*(?P<value>\S.*?)\s*")


def claims_from_mapping(scope: str, claims: Mapping[str, object], who: Who = "user") -> tuple[Claim, ...]:
    """Claims of one scope from key -> value, as in a ``[[guess]]`` table.

    Nested mappings are flattened (``{"sdpa": {"backend": "flash"}}``); ``why``, ``confidence`` and ``who``
    hold for all. In Python keyword arguments an underscore may stand for the dot (``sdpa_backend``).

    Raises:
        GuessError: an unknown key, a value that cannot be understood, a key given twice.

    """
    if not scope.strip():
        raise GuessError(
            "the scope is empty", "", 'name an annotation, op or module, or write "*" for every annotation'
        )
    plain: dict[str, object] = {}
    for name, value in _flattened(claims):
        if name in plain:
            raise GuessError(f"{name} is claimed twice", "", "keep one")
        plain[name] = value
    why = _word(plain, "why", "")
    confidence = cast("Confidence", _word(plain, "confidence", "high", get_args(Confidence)))
    who = cast("Who", _word(plain, "who", who, get_args(Who)))
    made: dict[str, list[Claim]] = {}
    for written, value in plain.items():
        key = known_key(written)
        if key in made:
            raise GuessError(f"{key} is claimed twice", f"also as {written}", "keep one")
        claims_of_key = [_claim(scope, written, one, who) for one in _each(key, value)]
        made[key] = [replace(claim, why=why, confidence=confidence) for claim in claims_of_key]
    return tuple(claim for claims_of_key in made.values() for claim in claims_of_key)


def claims_from_line(scope: str, line: str, who: Who = "user") -> tuple[Claim, ...]:
    """Claims of one scope from a typed line, as ``kernels 5, copies <= 1, backend flash``.

    Raises:
        GuessError: as ``claims_from_mapping``.

    """
    claims: dict[str, object] = {}
    last = ""
    for part in re.split(r"[,;]", line):
        if not part.strip():
            continue
        if last in _LISTS and not _names_key(part):
            cast("list[str]", claims[last]).append(part.strip())
            continue
        found = _TYPED.fullmatch(part)
        if found is None:
            raise GuessError(
                f"{part.strip()!r} says no value", "", "type a key and a value, as: kernels 5, copies 0"
            )
        last = known_key(SHORT.get(found["key"], found["key"]))
        if last in claims:
            raise GuessError(f"{last} is claimed twice", "", "keep one")
        claims[last] = [found["value"]] if last in _LISTS else found["value"]
    return claims_from_mapping(scope, claims, who)


def known_key(written: str) -> str:
    """Return the vocabulary's key for what was written.

    Raises:
        GuessError: there is none; near ones are named.

    """
    for key in (written, written.removesuffix("_us"), written.replace("_", ".", 1)):
        if key in KEYS:
            return key
    word, known = written[:64].lower(), [*KEYS, *NOT_KEYS]
    near = difflib.get_close_matches(word, known, n=1, cutoff=_ALIKE) or [
        one for one in known if len(word) >= _TELLING and one.startswith(word)
    ]
    some = f"keys are {', '.join(_USUAL)} and others; tracehunch explain lists all"
    raise GuessError(f"unknown key {written!r}", "", f"did you mean {near[0]}?" if near else some)


_ALIKE: Final = 0.7
_TELLING: Final = 3
"""Letters with which a key that begins with them may be meant."""
_USUAL: Final = ("kernels", "copies", "leaf_ops", "gpu_time", "wall_time", "sdpa.backend", "dominant")


def _each(key: str, value: object) -> Sequence[object]:
    """Return the values of a key that are claims of their own: of ``fused`` a list for each kernel."""
    if key not in MERGED_KEYS or not isinstance(value, (list, tuple)):
        return [value]
    return list(value) if any(isinstance(one, (list, tuple)) for one in value) else [value]


def _claim(scope: str, written: str, value: object, who: Who) -> Claim:
    key = known_key(written)
    unit = KEYS[key].unit
    try:
        default_unit = "us" if written.endswith("_us") else ""
        relation, expected = parse_value(key, value, unit, default_unit=default_unit)
        if isinstance(expected, str):
            expected = fact_word(key, expected)
        elif relation == "==" and isinstance(expected, tuple):
            expected = tuple(fact_word(key, str(one)) for one in expected)
    except GuessError as error:
        raise GuessError(f"{written}: {error.what}", error.why, error.todo) from None
    return Claim(key, relation, expected, scope, who, unit=unit)


def _flattened(claims: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in claims.items():
        if not isinstance(name, str):
            raise GuessError(f"the key {name!r} is no text", "", 'write {"kernels": 5}')
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _word(plain: dict[str, object], name: str, default: str, allowed: tuple[str, ...] = ()) -> str:
    """Take a word that is no claim out of a table."""
    word = plain.pop(name, default)
    if not isinstance(word, str):
        raise GuessError(f"{name} = {word!r} is not text", "", f'write {name} = "..."')
    if allowed and word not in allowed:
        raise GuessError(f"{name} = {word!r} is not known", "", f"use {', '.join(allowed)}")
    return word


def _names_key(part: str) -> bool:
    word = re.split(r"[\s:=<>~]", part.strip(), maxsplit=1)[0]
    return SHORT.get(word, word) in KEYS
