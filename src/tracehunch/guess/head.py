"""The ``[hunch]`` table of a hunch.toml: everything in it that is no claim."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast, get_args

from tracehunch.errors import GuessError
from tracehunch.guess.model import Who

_KEYS: Final = ("seal", "who", "made", "known", "context")


@dataclass(frozen=True, slots=True)
class Head:
    """Who the guess is by, its seal ("" for none), the findings known when it was made, and its context."""

    who: Who
    seal: str
    known: tuple[str, ...]
    context: Mapping[str, str]


def read_head(document: Mapping[str, object], label: str) -> Head:
    """Read the ``[hunch]`` table of a document, which may have none.

    Raises:
        GuessError: an unknown key, or a value of another type.

    """
    head = _table(document, "hunch", label)
    for name in head:
        if name not in _KEYS:
            what = f"{label}: unknown key {name!r} in [hunch]"
            raise GuessError(what, "", f"it may hold {', '.join(_KEYS)}")
    who, seal, known = head.get("who", "user"), head.get("seal", ""), head.get("known", [])
    if who not in get_args(Who):
        raise GuessError(f"{label}: who = {who!r} is not known", "", f"use {', '.join(get_args(Who))}")
    if not isinstance(seal, str):
        raise GuessError(f"{label}: seal is not text", "", "remove it, or write the guess anew")
    if not isinstance(known, list) or not all(isinstance(one, str) for one in known):
        raise GuessError(
            f"{label}: known is no list of texts",
            "",
            'write ["hidden-copy in attn_fwd: aten::masked_fill x1"]',
        )
    return Head(cast("Who", who), seal, tuple(known), _context(head, label))


def _context(head: Mapping[str, object], label: str) -> Mapping[str, str]:
    context = _table(head, "context", label)
    for name, value in context.items():
        if not isinstance(value, str):
            raise GuessError(f"{label}: context {name} is not text", "", f'write {name} = "{value}"')
    return cast("Mapping[str, str]", context)


def _table(parent: Mapping[str, object], name: str, label: str) -> Mapping[str, object]:
    value = parent.get(name, {})
    if not isinstance(value, dict):
        whole = name if name == "hunch" else f"hunch.{name}"
        raise GuessError(f"{label}: {name} is not a table", "", f"write [{whole}]")
    return value
