"""Claim and Guess: what somebody expects of a trace, sealed before the look."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tracehunch.facts.model import Value

Relation = Literal["==", "<=", "<", ">=", ">", "in", "~", "leads"]
"""``in``: a closed range (low, high); ``~``: within 10 %; ``leads``: these ops lead by GPU time, in order."""

Who = Literal["textbook", "expert", "user", "baseline"]

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Claim:
    """One expectation: ``key relation expected`` in ``scope``. Times are microseconds (keys of unit "us")."""

    key: str
    relation: Relation
    expected: Value | tuple[float, float]
    scope: str
    who: Who
    why: str = ""
    confidence: Confidence = "high"
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Guess:
    """Claims and the context they were made for (device, torch, shapes ...), sealed before the look.

    ``known`` are findings that were there when the guess was made, as "hidden-copy in attn_fwd:
    aten::masked_fill x1" (an op and how often it does so a call): ``check`` shows them and does not fail on
    them.
    """

    claims: tuple[Claim, ...]
    context: Mapping[str, str] = field(default_factory=dict)
    known: tuple[str, ...] = ()

    @property
    def seal(self) -> str:
        """SHA-256 over all of it: the same guess has the same seal on every machine."""
        plain = [
            [c.key, c.relation, c.expected, c.scope, c.who, c.why, c.confidence, c.unit] for c in self.claims
        ]
        everything = [plain, sorted(self.context.items()), self.known]
        return hashlib.sha256(json.dumps(everything).encode()).hexdigest()
