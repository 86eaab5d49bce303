"""What a profiled scope shows, as ``p.facts`` and ``p.ops``: read by key, each value with its origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.facts.vocabulary import KEYS
from tracehunch.guess.model import Claim
from tracehunch.judge.confront import confront
from tracehunch.pytest_plugin._claims import vocabulary_key
from tracehunch.pytest_plugin._judge import untold_of
from tracehunch.pytest_plugin._values import FactValue, Origin, remembering
from tracehunch.report.scope_ops import ops_of
from tracehunch.verdict import CannotTell

if TYPE_CHECKING:
    from pathlib import Path

    from tracehunch.facts.model import Fact, ScopeFacts
    from tracehunch.verdict import Look


class FactsView(Mapping[str, FactValue]):
    """Key of the vocabulary -> value per call of the scope (the median): counts, microseconds, words.

    A key that the trace cannot show is not in it. Asking for it skips the test with the reason (with
    ``--tracehunch-strict`` it fails); an unknown key is an error that names the nearest. Times are listed
    with their unit (``gpu_time_us``), and found without it, too.
    """

    def __init__(self, scope: ScopeFacts, look: Look, trace_path: Path, *, strict: bool) -> None:
        self._scope, self._look, self._path, self._strict = scope, look, trace_path, strict

    def __getitem__(self, key: str) -> FactValue:
        __tracebackhide__ = True
        known = vocabulary_key(key)
        fact = self._scope.facts.get(known)
        if fact is None:
            fact = self._told(known)
        return remembering(fact.value, Origin(known, fact.unit, self._scope, self._look, self._path))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and vocabulary_key(key) in self._scope.facts

    def __iter__(self) -> Iterator[str]:
        return (KEYS[key].json_name for key in self._scope.facts)

    def __len__(self) -> int:
        return len(self._scope.facts)

    def __repr__(self) -> str:
        return repr({KEYS[key].json_name: fact.value for key, fact in self._scope.facts.items()})

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, ``default`` where the trace cannot show it; an unknown key raises."""
        return default if vocabulary_key(key) not in self._scope.facts else self[key]

    def _told(self, key: str) -> Fact:
        """Return what is a fact where it is asked for only, else skip the test."""
        __tracebackhide__ = True
        claim = Claim(key, "==", 0, self._scope.scope.name, "user", unit=KEYS[key].unit)
        told = next(iter(confront([claim], self._look.facts)))
        if not isinstance(told, CannotTell):
            return told.fact
        why = str(untold_of(told))
        if self._strict:
            pytest.fail(why)
        pytest.skip(why)


class OpsView(Mapping[str, FactValue]):
    """Op -> how often a call of the scope runs it, on the scope's own thread; 0 for any that it does not run.

    ``aten::`` may be left out. Ops are recorded on every device, so that ``p.ops["copy_"]`` counts copies of
    tensors on a CPU, too.
    """

    def __init__(self, scope: ScopeFacts, look: Look, trace_path: Path) -> None:
        self._scope, self._look, self._path = scope, look, trace_path
        self._counts = {op.name: op.per_call for op in ops_of(scope, look.facts.tree)}

    def __getitem__(self, op: str) -> FactValue:
        name = op if op in self._counts or "::" in op else f"aten::{op}"
        origin = Origin(name, "count", self._scope, self._look, self._path, is_op=True)
        return remembering(self._counts.get(name, 0), origin)

    def __contains__(self, op: object) -> bool:
        return isinstance(op, str) and (op in self._counts or f"aten::{op}" in self._counts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return repr(self._counts)
