"""Check: one condition under which a backend refuses a call, and the tables of all of them.

A table, `tables/<device>-<backend>.toml`, has the checks of one backend in the order in which PyTorch makes
them. A check's entry has
    id       what it is called: the same in each version's form of the same condition
    test     the predicate that tells whether a call passes
    words    why the call is refused, with slots for the call's sizes (`words.py`) and the check's own numbers
    do       what to change
    source   where the condition was learnt
    since, until   the first and last torch version that has this form (absent: the first, the last known)
    news     what is new in this form, to follow "from torch <since>"
    older    true where it is known to hold in the versions of which only some rules are known
All other keys are numbers for the predicate.

Before the checks stand
    complete_from   the first version whose checks these are all (absent: none is); a call that passes them is
                    then accepted
    otherwise       what a call that passes them in another version is: "accepted" or "cannot tell"
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from tracehunch.predict.releases import Version, parse_version, releases
from tracehunch.predict.sdpa.call_predicates import CALL_PREDICATES
from tracehunch.predict.sdpa.gpu_predicates import GPU_PREDICATES
from tracehunch.predict.sdpa.predicate import Predicate

_KEYS: Final = frozenset({"id", "test", "words", "do", "source", "since", "until", "news", "older"})
PREDICATES: Final = {**CALL_PREDICATES, **GPU_PREDICATES}
_REQUIRED: Final = ("id", "test", "words", "do", "source")


@dataclass(frozen=True, slots=True)
class Check:
    """One row of a table; `numbers` are the arguments of its predicate."""

    id: str
    passes: Predicate
    numbers: Mapping[str, Any]
    words: str
    todo: str
    source: str
    since: Version | None
    until: Version | None
    news: str
    older: bool

    def in_version(self, torch: Version) -> bool:
        """Whether a torch version has this form of the condition."""
        return (self.since is None or self.since <= torch) and (self.until is None or torch <= self.until)

    def known_in(self, torch: Version) -> bool:
        """Whether the condition is known to hold in a version that has it."""
        return self.older or releases()[torch].exact


@dataclass(frozen=True, slots=True)
class Table:
    """All checks of one backend on one device, in order."""

    name: str
    checks: tuple[Check, ...]
    complete_from: Version | None
    accepts_otherwise: bool

    def is_complete(self, torch: Version) -> bool:
        """Whether these are all checks of a torch version."""
        return self.complete_from is not None and self.complete_from <= torch


def parse_check(table: Mapping[str, Any]) -> Check:
    """Make a check of its table; `ValueError` for a key that is missing or a predicate that is not there."""
    missing = [key for key in _REQUIRED if key not in table]
    if missing or table["test"] not in PREDICATES:
        raise ValueError(f"check {table.get('id')!r}: missing keys {missing}, test {table.get('test')!r}")
    return Check(
        id=table["id"],
        passes=PREDICATES[table["test"]],
        numbers={key: _number(value) for key, value in table.items() if key not in _KEYS},
        words=table["words"],
        todo=table["do"],
        source=table["source"],
        since=parse_version(table["since"]) if "since" in table else None,
        until=parse_version(table["until"]) if "until" in table else None,
        news=table.get("news", ""),
        older=table.get("older", False),
    )


def _number(value: Any) -> Any:
    return tuple(_number(part) for part in value) if isinstance(value, list) else value


@lru_cache(maxsize=64)
def table_of(name: str) -> Table:
    """Return the table "<device>-<backend>"; `FileNotFoundError` where there is none."""
    text = (files(__package__) / "tables" / f"{name}.toml").read_text(encoding="utf-8")
    read = tomllib.loads(text)
    return Table(
        name=name,
        checks=tuple(parse_check(table) for table in read["check"]),
        complete_from=parse_version(read["complete_from"]) if "complete_from" in read else None,
        accepts_otherwise=read["otherwise"] == "accepted",
    )


@lru_cache(maxsize=256)
def checks_in(name: str, torch: Version) -> tuple[Check, ...]:
    """Return a table's checks of one torch version, in order."""
    return tuple(check for check in table_of(name).checks if check.in_version(torch))


@lru_cache(maxsize=64)
def changing(name: str) -> frozenset[str]:
    """Return the ids of checks that are not the same in all exactly known versions."""
    exact = [release.torch for release in releases().values() if release.exact]
    forms: dict[str, set[tuple[bool, ...]]] = {}
    for check in table_of(name).checks:
        forms.setdefault(check.id, set()).add(tuple(check.in_version(torch) for torch in exact))
    return frozenset(name for name, where in forms.items() if where != {(True,) * len(exact)})
