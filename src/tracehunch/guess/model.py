"""Claim and Guess: what somebody expects of a trace, sealed before the look."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tracehunch.facts.model import Value

if TYPE_CHECKING:
    from tracehunch.guess.written import Written

Relation = Literal["==", "<=", "<", ">=", ">", "in", "~", "leads", "merged"]
"""``in``: a closed range (low, high); ``~``: within 10 %; ``leads``: these ops lead by GPU time, in order;
``merged``: one generated kernel holds all of these ops."""

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

    @staticmethod
    def of(claims: "Written", scope: str = "step") -> "Guess":
        """Make a guess from claims in the words of hunch.toml.

        ``Guess.of({"kernels": 5, "sdpa.backend": "flash", "gpu_time": "< 200us"}, scope="attn_fwd")``; a list
        of such mappings, each with its ``"scope"``; or the path of a hunch.toml. Values per call, as
        docs/hunch.md lists them.

        Raises:
            GuessError: a key or value that cannot be understood, or a file that cannot be read.

        """
        from tracehunch.guess.written import guess_of  # noqa: PLC0415  # it makes Guesses, so imports this

        return guess_of(claims, scope)

    @property
    def seal(self) -> str:
        """SHA-256 over all of it: the same guess has the same seal on every machine."""
        plain = [
            [c.key, c.relation, c.expected, c.scope, c.who, c.why, c.confidence, c.unit] for c in self.claims
        ]
        everything = [plain, sorted(self.context.items()), self.known]
        return hashlib.sha256(json.dumps(everything).encode()).hexdigest()
