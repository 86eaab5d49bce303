"""Writing hunch.toml: a Guess -> TOML text that ``parse_hunch`` reads back as the same, seal and all."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from tracehunch.errors import GuessError
from tracehunch.guess.model import Claim, Guess
from tracehunch.guess.relation import format_value
from tracehunch.units import printable

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def write_hunch(guess: Guess, comments: Sequence[str] = (), made: datetime | None = None) -> str:
    """TOML text of a guess, sealed; ``comments`` stand at its top, ``made`` is not part of the seal.

    Raises:
        GuessError: it has no claims, or text that TOML cannot hold (half of a surrogate pair).

    """
    if not guess.claims:
        raise GuessError("a guess without claims cannot be written")
    who = guess.claims[0].who
    lines = [f"# {printable(part)}".rstrip() for comment in comments for part in comment.split("\n")]
    lines += ["", "[hunch]", f"who = {_text(who)}", f"seal = {_text(guess.seal)}"]
    if made is not None:
        lines.append(f"made = {made.astimezone(UTC).isoformat(timespec='seconds').replace('+00:00', 'Z')}")
    if guess.known:
        lines += ["known = [", *(f"    {_text(one)}," for one in guess.known), "]"]
    if guess.context:
        lines += [
            "",
            "[hunch.context]",
            *(f"{_key(k)} = {_text(v)}" for k, v in sorted(guess.context.items())),
        ]
    for _, table in groupby(guess.claims, key=lambda c: (c.scope, c.who, c.why, c.confidence)):
        lines += ["", *_table(tuple(table), who)]
    return "\n".join(lines).lstrip("\n") + "\n"


def writable(text: str) -> bool:
    """Whether TOML can hold a text: a damaged trace may have halves of surrogate pairs in its names."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _table(claims: tuple[Claim, ...], default_who: str) -> list[str]:
    first = claims[0]
    lines = ["[[guess]]", f"scope = {_text(first.scope)}"]
    by_key: dict[str, list[Claim]] = {}
    for claim in claims:
        by_key.setdefault(claim.key, []).append(claim)
    keys = set(by_key)
    lines += [f"{_claim_key(key, keys)} = {_of_key(same)}" for key, same in by_key.items()]
    if first.why:
        lines.append(f"why = {_text(first.why)}")
    if first.confidence != "high":
        lines.append(f"confidence = {_text(first.confidence)}")
    if first.who != default_who:
        lines.append(f"who = {_text(first.who)}")
    return lines


def _of_key(claims: list[Claim]) -> str:
    """Write what one table claims of a key: one value, or of merged ops a list for each kernel."""
    values = [_value(format_value(claim)) for claim in claims]
    if len(values) == 1:
        return values[0]
    if any(claim.relation != "merged" for claim in claims):
        raise GuessError(f"scope {claims[0].scope!r} claims a key twice", "", "keep one claim of each key")
    return f"[{', '.join(values)}]"


def _claim_key(key: str, keys: set[str]) -> str:
    """Return the key, in quotes where TOML would else take it for a part of another (copies, copies.dtod)."""
    clash = any(key.startswith(f"{other}.") for other in keys)
    return _text(key) if clash else ".".join(_key(part) for part in key.split("."))


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _value(value: int | str | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_text(part) for part in value)}]"
    return _text(value) if isinstance(value, str) else str(value)


def _text(text: str) -> str:
    """Return a TOML basic string."""
    if not writable(text):
        raise GuessError(f"{text!r} cannot be written", "TOML holds no halves of surrogate pairs")
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else _escaped(c)) for c in text) + '"'


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # TOML's two escape lengths
