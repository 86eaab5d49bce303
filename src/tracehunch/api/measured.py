"""Facts as users read them: ``look.scopes["attn_fwd"]["kernels"]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tracehunch.errors import TracehunchError
from tracehunch.facts.model import Facts, ScopeFacts, Value
from tracehunch.guess.claims import known_key
from tracehunch.guess.scopes import EVERY, scopes_named, why_missing
from tracehunch.judge.confront import why_absent
from tracehunch.units import plural, printable


class FactError(TracehunchError, KeyError):
    """A fact, or a scope, that the trace does not show; the text says why and what would record it."""

    __str__ = Exception.__str__  # a KeyError prints itself in quotes


class ScopeValues(Mapping[str, Value]):
    """What one scope shows, per call: key -> value.

    Keys are those of hunch.toml, times with their unit as in JSON (``gpu_time_us``; ``gpu_time`` is found,
    too). Counts are int, times float microseconds, bytes and FLOPs int, ratios float, text str or a tuple of
    str. A key that the trace does not show is absent, never 0 or None: ``[]`` raises FactError, which says
    why, ``get`` returns None. A key that does not exist raises GuessError, which names the nearest.
    """

    def __init__(self, scope: ScopeFacts, facts: Facts) -> None:
        self._scope, self._facts = scope, facts

    @property
    def name(self) -> str:
        """What the scope is called in the trace."""
        return self._scope.scope.name

    @property
    def calls(self) -> int:
        """How many calls of it the trace has; values are medians over them."""
        return len(self._scope.scope.calls)

    def __getitem__(self, key: str) -> Value:
        known = known_key(key)
        value = self._scope.value(known)
        if value is None:
            reason, record_with = why_absent(known, self._scope, self._facts)
            todo = f"record with {record_with}" if record_with else ""
            raise FactError(f"{known} of {printable(self.name)} cannot be told", reason, todo)
        return value

    def __iter__(self) -> Iterator[str]:
        return (
            f"{key}_us" if fact.unit == "us" and not key.endswith("_us") else key
            for key, fact in self._scope.facts.items()
        )

    def __len__(self) -> int:
        return len(self._scope.facts)

    def __repr__(self) -> str:
        values = ", ".join(f"{key!r}: {self[key]!r}" for key in self)
        return f"<{printable(self.name)}, {plural(self.calls, 'call')}: {{{values}}}>"


class Scopes(Mapping[str, ScopeValues]):
    """The scopes of a trace by name; also by what hunch.toml calls them: an op, ``step``, a module's end."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def __getitem__(self, name: str) -> ScopeValues:
        found = () if name == EVERY else scopes_named(name, self._facts)
        if not found:
            reason, record_with = why_missing(name, self._facts)
            raise FactError(reason, todo=f"record with {record_with}" if record_with else "")
        return ScopeValues(found[0], self._facts)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(one.scope.name for one in self._facts.scopes))

    def __len__(self) -> int:
        return len({one.scope.name for one in self._facts.scopes})

    def __repr__(self) -> str:
        return f"<Scopes: {', '.join(printable(name) for name in self)}>"
