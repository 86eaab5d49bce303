"""The tables of docs/json.md as a schema that documents can be held against."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_OBJECT = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (always|maybe) \| (.*?) ?\|$", re.MULTILINE)
_PLAIN = {
    "any": object,
    "text": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


@dataclass
class Schema:
    """Objects as name -> field -> (type, whether it is always there), and which fields were met."""

    objects: Mapping[str, Mapping[str, tuple[str, bool]]]
    met: set[tuple[str, str]] = field(default_factory=set)

    def unmet(self) -> set[tuple[str, str]]:
        """Return the fields that no document had."""
        return {(name, one) for name, fields in self.objects.items() for one in fields} - self.met

    def errors(self, value: Any, kind: str, where: str = "") -> Iterator[str]:
        """Yield what in a value is not as the type says."""
        if kind in self.objects:
            yield from self._object(value, kind, where)
        elif kind.startswith("[") and isinstance(value, list):
            for one in value:
                yield from self.errors(one, kind[1:-1], f"{where}[]")
        elif kind.startswith("{text: ") and isinstance(value, dict):
            for key, one in value.items():
                yield from self.errors(one, kind[7:-1], f"{where}.{key}")
        elif kind.startswith('"'):
            if value not in re.findall(r'"([^"]*)"', kind):
                yield f"{where}: {value!r} is none of {kind}"
        elif not any(_is_plain(value, one) for one in kind.split(" or ")):
            yield f"{where}: {value!r} is no {kind}"

    def _object(self, value: Any, kind: str, where: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{where}: no {kind}"
            return
        fields = self.objects[kind]
        for key in value.keys() - fields.keys():
            yield f"{where}: {kind} has no {key}"
        for key, (_, is_always) in fields.items():
            if is_always and key not in value:
                yield f"{where}: {kind} lacks {key}"
        for key in value.keys() & fields.keys():
            self.met.add((kind, key))
            yield from self.errors(value[key], fields[key][0], f"{where}.{key}")


def _is_plain(value: Any, kind: str) -> bool:
    return isinstance(value, _PLAIN.get(kind, ())) and (
        kind in {"any", "boolean"} or not isinstance(value, bool)
    )


def read(page: str) -> Schema:
    """Read the page's tables: one object a heading."""
    found = {
        name: {key: (kind, there == "always") for key, kind, there, _ in _ROW.findall(body)}
        for name, body in _OBJECT.findall(page)
    }
    return Schema({name: fields for name, fields in found.items() if fields})
