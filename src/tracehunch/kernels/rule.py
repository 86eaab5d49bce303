"""The rules that tell kernels from their names: tables in `rules/*.toml`, compiled when first needed.

A rule's table has
    id, source     what it is called, and where its pattern was learnt
    literals       strings of which every matching name contains one: a cheap test before the pattern is tried
    pattern        a regular expression, anchored; `<<NAME>>` stands for a piece defined in `words.toml`
    library, algorithm, unit, dtype, note, [rule.fields]    templates (the note is plain text)
    vendor         "amd" or "nvidia" where the name exists on one vendor's GPUs only
    examples       names that this rule, and no other, matches
A template is plain text with slots: `{group}` for what a group of the pattern matched, `{group|words}` for
its translation by a table of `words.toml`, `{group?text}` for that text if the group took part. A template
has no value where a slot's group did not take part or its word has no translation; a list of templates has
the value of the first one that has any.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

_SLOT = re.compile(r"\{(\w+)(?:\|(\w+)|\?([^{}]*))?\}")
_PIECE = re.compile(r"<<([A-Z]+)>>")
_REQUIRED: Final = ("id", "pattern", "literals", "library", "algorithm", "unit", "source", "examples")
_OPTIONAL: Final = ("dtype", "fields", "note", "vendor")

Words = Mapping[str, Mapping[str, str]]
Groups = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Template:
    """Alternatives of plain text with slots."""

    alternatives: tuple[str, ...]

    def fill(self, groups: Groups, words: Words) -> str | None:
        """Return the value of the first alternative whose slots all have one."""
        for text in self.alternatives:
            value = _filled(text, groups, words)
            if value is not None:
                return value
        return None


def _filled(text: str, groups: Groups, words: Words) -> str | None:
    if "{" not in text:
        return text
    parts: list[str] = []
    at = 0
    for slot in _SLOT.finditer(text):
        value = groups.get(slot.group(1))
        table, constant = slot.group(2), slot.group(3)
        if value is not None and table is not None:
            value = words[table].get(value)
        elif value is not None and constant is not None:
            value = constant
        if value is None:
            return None
        parts.append(text[at : slot.start()])
        parts.append(value)
        at = slot.end()
    parts.append(text[at:])
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of a rules table."""

    id: str
    pattern: str
    literals: tuple[str, ...]
    library: Template
    algorithm: Template
    unit: Template
    dtype: Template
    fields: tuple[tuple[str, Template], ...]
    note: str
    vendor: str
    source: str
    examples: tuple[str, ...]
    _compiled: list[re.Pattern[str]] = field(default_factory=list, compare=False, repr=False)

    def match(self, text: str) -> Groups | None:
        """Return the groups of a canonical name, `None` where the rule does not match it.

        The pattern is compiled at the first name that has one of the literals.
        """
        for literal in self.literals:
            if literal in text:
                break
        else:
            return None
        if not self._compiled:
            self._compiled.append(re.compile(self.pattern))
        found = self._compiled[0].match(text)
        return None if found is None else found.groupdict()


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules, and the word tables that their templates use."""

    rules: tuple[Rule, ...]
    words: Words


def _template(value: str | list[str] | None) -> Template:
    if value is None:
        return Template(())
    return Template((value,) if isinstance(value, str) else tuple(value))


def parse_rule(table: Mapping[str, Any], pieces: Mapping[str, str]) -> Rule:
    """Make a rule of its table; `ValueError` for a key that is missing or unknown."""
    missing = [key for key in _REQUIRED if key not in table]
    unknown = [key for key in table if key not in _REQUIRED and key not in _OPTIONAL]
    if missing or unknown:
        raise ValueError(f"rule {table.get('id')!r}: missing keys {missing}, unknown keys {unknown}")
    return Rule(
        id=table["id"],
        pattern=_PIECE.sub(lambda found: pieces[found.group(1)], table["pattern"]),
        literals=tuple(table["literals"]),
        library=_template(table["library"]),
        algorithm=_template(table["algorithm"]),
        unit=_template(table["unit"]),
        dtype=_template(table.get("dtype")),
        fields=tuple((label, _template(value)) for label, value in table.get("fields", {}).items()),
        note=table.get("note", ""),
        vendor=table.get("vendor", ""),
        source=table["source"],
        examples=tuple(table["examples"]),
    )


@lru_cache(maxsize=1)
def all_rules() -> Rules:
    """Read every rules table of the package, in the order of file names."""
    folder = files(__package__) / "rules"
    shared = tomllib.loads((folder / "words.toml").read_text(encoding="utf-8"))
    rules: list[Rule] = []
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml") and file.name != "words.toml":
            tables = tomllib.loads(file.read_text(encoding="utf-8"))["rule"]
            rules.extend(parse_rule(table, shared["pieces"]) for table in tables)
    return Rules(rules=tuple(rules), words=shared["words"])
