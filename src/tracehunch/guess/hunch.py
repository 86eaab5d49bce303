"""Reading hunch.toml: ``[[guess]]`` tables -> a Guess, and whether it was edited after it was sealed.

A file may begin with a ``[hunch]`` table: ``seal`` (as ``tracehunch guess`` writes it), ``who`` the guess is
by (``user`` where absent), when it was ``made``, ``known`` findings that ``check`` does not fail on
(``"hidden-copy in attn_fwd: aten::masked_fill x1"``; without an op, all of that id and scope), and
``[hunch.context]``: what it was made for, as ``device = "NVIDIA H200"``.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tracehunch.errors import GuessError
from tracehunch.guess.claims import claims_from_mapping
from tracehunch.guess.head import read_head
from tracehunch.guess.model import Claim, Guess, Who

_TOP: Final = ("guess", "hunch")
_LIMIT_BYTES: Final = 16 << 20
_CANNOT_EXTEND = re.compile(r"[Cc]annot (overwrite|mutate)|[Cc]an't overwrite")
_AT_LINE = re.compile(r"at line (\d+)")
_HEADER = re.compile(r"\s*\[\[\s*guess\s*\]\]")


@dataclass(frozen=True, slots=True)
class Hunch:
    """What a hunch.toml holds; ``sealed`` is the seal written in it, "" for none."""

    guess: Guess
    sealed: str = ""

    @property
    def edited(self) -> bool:
        """Whether the file has a seal that its claims no longer have."""
        return bool(self.sealed) and self.sealed != self.guess.seal


def read_hunch(path: Path) -> Hunch:
    """Read the guess in a hunch.toml.

    Raises:
        GuessError: it cannot be read or understood; the text names file, line where known, and what to write.

    """
    order = "name a hunch.toml, then a trace"
    try:
        with path.open("rb") as file:
            data = file.read(_LIMIT_BYTES + 1)
    except OSError as error:
        reason = "it is a folder" if path.is_dir() else error.strerror or str(error)
        todo = "name a hunch.toml; tracehunch guess --from TRACE writes one"
        raise GuessError(f"cannot read {path}", reason, todo) from None
    if len(data) > _LIMIT_BYTES:
        raise GuessError(f"cannot read {path}", "it is larger than 16 MiB, so no hunch.toml", order)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GuessError(f"cannot read {path}", f"byte {error.start} is not UTF-8", order) from None
    if text.lstrip()[:1] == "{":
        raise GuessError(f"cannot read {path}", "it is JSON, not TOML", order)
    return parse_hunch(text, str(path))


def parse_hunch(text: str, label: str = "hunch.toml") -> Hunch:
    """Read the guess in the text of a hunch.toml; ``label`` names it in errors (as in ``read_hunch``)."""
    document = _document(text, label)
    for name in document:
        if name not in _TOP:
            raise GuessError(f"{label}: unknown table [{name}]", "", "claims are written in [[guess]] tables")
    head = read_head(document, label)
    claims: list[Claim] = []
    tables = _tables(document, label)
    for where, table in zip(_places(text, len(tables), label), tables, strict=True):
        claims += _claims(table, head.who, where)
    refuse_duplicates(claims, label)
    return Hunch(Guess(tuple(claims), head.context, head.known), head.seal)


def _document(text: str, label: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        todo = _todo(text, error)
        raise GuessError(f"{label} is not TOML", str(error), todo) from None
    except RecursionError:
        raise GuessError(f"{label} is not TOML that can be read", "it is nested too deeply") from None


def _todo(text: str, error: tomllib.TOMLDecodeError) -> str:
    """Say what to write in place of a key that stands twice, or is both a value and a table."""
    if not _CANNOT_EXTEND.search(str(error)):
        return ""
    found = _AT_LINE.search(str(error))
    lines = text.splitlines()[: int(found[1])] if found else []
    headers = [number for number, line in enumerate(lines) if line.lstrip().startswith("[")]
    table = lines[headers[-1] + 1 :] if headers else lines
    keys = [line.partition("=")[0].strip() for line in table if "=" in line]
    for key, line in zip(keys, (line for line in table if "=" in line), strict=True):
        if "." in key and key.partition(".")[0] in keys:
            value = line.partition("=")[2].strip()
            return f'beside {key.partition(".")[0]} write "{key}" = {value}, with the key in quotes'
    return 'a key may stand once in a table; a range is "4..6"'


def _tables(document: Mapping[str, object], label: str) -> Sequence[Mapping[str, object]]:
    tables = document.get("guess", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise GuessError(f"{label}: guess is not a list of tables", "", "write [[guess]], with two brackets")
    if not tables:
        todo = 'write a [[guess]] table, as: scope = "attn_fwd", kernels = 5'
        raise GuessError(f"{label}: no guess in it", "", todo)
    return tables


def _places(text: str, n_tables: int, label: str) -> list[str]:
    """Return what errors call each table: with its line where every header stands on a line of its own."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _HEADER.match(line)]
    known = len(lines) == n_tables
    return [f"{label}: guess {n + 1}" + (f" (line {lines[n]})" if known else "") for n in range(n_tables)]


def _claims(table: Mapping[str, object], who: Who, where: str) -> tuple[Claim, ...]:
    try:
        scope = _scope(table)
        claims = claims_from_mapping(scope, {key: table[key] for key in table if key != "scope"}, who)
    except GuessError as error:
        raise GuessError(f"{where}: {error.what}", error.why, error.todo) from None
    if not claims:
        raise GuessError(f"{where}: scope {scope!r} claims nothing", "", "add a key, as kernels = 5")
    return claims


def _scope(table: Mapping[str, object]) -> str:
    scope = table.get("scope")
    if scope is None:
        raise GuessError("no scope", "", 'add scope = "NAME" (annotation, op, module, step, or "*")')
    if not isinstance(scope, str):
        raise GuessError(f"scope = {scope!r} is not text", "", 'write scope = "NAME"')
    return scope


def refuse_duplicates(claims: Sequence[Claim], label: str) -> None:
    """Raise GuessError where a key of a scope is claimed twice by the same; ``label`` names the guess."""
    seen: set[tuple[object, ...]] = set()
    for claim in claims:
        identity: tuple[object, ...] = (claim.scope, claim.key, claim.who)
        if claim.relation == "merged":  # each is about another kernel
            identity = (*identity, claim.expected)
        if identity in seen:
            what = f"{label}: {claim.key} of scope {claim.scope!r} is claimed twice"
            raise GuessError(what, "", 'keep one; a range is "4..6"')
        seen.add(identity)
