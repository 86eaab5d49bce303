"""What a look found and what became of the guesses: Finding, Held, Surprise, CannotTell, Verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from tracehunch.units import plural

if TYPE_CHECKING:
    from tracehunch.facts.model import Facts, Value
    from tracehunch.guess import Claim

Severity = Literal["error", "warning", "note"]
Confidence = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("note", "warning", "error")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check saw, whether or not anybody guessed.

    ``evidence`` are positions in the file's traceEvents. ``time_at_stake_us`` is what the fix would save per
    call of the scope, estimated; ``cause`` says how it was estimated. ``subject`` is the op that it is about
    (several joined by commas, "" for none), ``per_call`` how many activities a call of the scope are: with id
    and scope they tell whether a later trace has the same finding, or a new one. ``idle`` are the pieces of
    the GPU's idle time (positions in ``checks._idle.idle_of``) that the fix would fill: no two findings share
    one.
    """

    id: str
    scope: str
    severity: Severity
    confidence: Confidence
    time_at_stake_us: float
    summary: str
    cause: str
    fix: str
    evidence: tuple[int, ...]
    subject: str = ""
    per_call: float = 0.0
    idle: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """A claim that the trace bears out."""

    claim: Claim
    seen: Value


@dataclass(frozen=True, slots=True)
class Surprise:
    """A claim that a fact broke, with the findings (ids) that explain it; none means unexplained."""

    claim: Claim
    seen: Value
    severity: Severity
    explained_by: tuple[str, ...]
    time_at_stake_us: float
    evidence: tuple[int, ...]
    slip: str = ""
    """An op of the claim that the trace has not, with the one that may be meant; "" where there is none."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """A claim, or a check, that the trace cannot decide.

    ``record_with`` is what would show it, "" if nothing would.
    """

    key: str
    scope: str
    reason: str
    record_with: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the claims. Never two outcomes where there are three."""

    held: tuple[Held, ...] = ()
    surprises: tuple[Surprise, ...] = ()
    cannot_tell: tuple[CannotTell, ...] = ()

    def and_then(self, other: Verdict) -> Verdict:
        """Both verdicts together."""
        return replace(
            self,
            held=self.held + other.held,
            surprises=self.surprises + other.surprises,
            cannot_tell=self.cannot_tell + other.cannot_tell,
        )


@dataclass(frozen=True, slots=True)
class Checked:
    """What the checks saw in one trace: findings ranked by time at stake, and what no check could tell."""

    findings: tuple[Finding, ...] = ()
    cannot_tell: tuple[CannotTell, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Look:
    """Everything one look at a trace yields; what reports are rendered from."""

    facts: Facts
    checked: Checked
    verdict: Verdict = Verdict()

    def __repr__(self) -> str:
        trace = self.facts.tree.trace
        parts = [plural(len(trace.gpu.row), "GPU activity", "GPU activities")]
        parts.append(plural(len(self.checked.findings), "finding"))
        parts += [plural(len(self.verdict.surprises), "surprise")] if self.verdict != Verdict() else []
        return f"<Look of {trace.label}: {', '.join(parts)}>"
