"""What was unexpected in the attention series: surprises by time at stake, and what else the checks saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.attention.outcome import Outcome, Series, looks
from tracehunch.report.attention_leaves import leaf_text
from tracehunch.report.attention_words import claim_text, value_text
from tracehunch.units import join, printable, time_us
from tracehunch.verdict import SEVERITIES, Finding, Surprise

if TYPE_CHECKING:
    from collections.abc import Sequence

EVIDENCE_SHOWN: Final = 6


@dataclass(frozen=True, slots=True)
class Ranked:
    """A surprise of one variant, with the findings that explain it."""

    outcome: Outcome
    surprise: Surprise
    findings: tuple[Finding, ...]


def surprises(series: Series) -> list[Ranked]:
    """List the surprises of all variants, those with the most time at stake first."""
    found = [
        Ranked(outcome, surprise, _explaining(outcome, surprise))
        for outcome, look in looks(series)
        for surprise in look.verdict.surprises
    ]
    return sorted(
        found, key=lambda one: (-one.surprise.time_at_stake_us, -SEVERITIES.index(one.surprise.severity))
    )


def others(series: Series) -> list[tuple[str, Finding]]:
    """List findings that no surprise rests on, each once with its variants, the most time at stake first."""
    told = {(one.outcome.variant.name, finding.id) for one in surprises(series) for finding in one.findings}
    users: dict[tuple[str, str], list[str]] = {}
    first: dict[tuple[str, str], Finding] = {}
    for outcome, look in looks(series):
        for finding in look.checked.findings:
            if (outcome.variant.name, finding.id) not in told:
                users.setdefault((finding.id, finding.summary), []).append(outcome.variant.name)
                first.setdefault((finding.id, finding.summary), finding)
    left = [(", ".join(users[key]), finding) for key, finding in first.items()]
    return sorted(left, key=lambda pair: (-pair[1].time_at_stake_us, -SEVERITIES.index(pair[1].severity)))


def cannot_tell(series: Series) -> list[tuple[Outcome, str]]:
    """List what the traces cannot decide, and how to record so that they can."""
    lines = []
    for outcome, look in looks(series):
        for one in (*look.verdict.cannot_tell, *look.checked.cannot_tell):
            record = f"; record with {one.record_with}" if one.record_with else ""
            lines.append((outcome, printable(f"{one.key}: {one.reason}{record}")))
    return lines


def refusals(series: Series) -> list[tuple[str, str]]:
    """Why variants did not run here, each reason once, and what is shown in their place."""
    users: dict[str, list[str]] = {}
    for outcome in series.outcomes:
        if outcome.reason:
            users.setdefault(_reason_text(outcome), []).append(outcome.variant.name)
    return [(", ".join(names), reason) for reason, names in users.items()]


def reasons_title(series: Series) -> str:
    """Give the heading above the reasons: what did not run, or what else went wrong."""
    told = [outcome for outcome in series.outcomes if outcome.reason]
    return "Went wrong" if any(one.status == "ran" or one.is_wrong for one in told) else "Not run here"


def surprise_text(one: Ranked) -> str:
    """``guessed 1 kernel, saw 20 kernels; 2.422 ms at stake``."""
    claim, surprise = one.surprise.claim, one.surprise
    who = "you guessed" if claim.who == "user" else "guessed"
    text = f"{who} {claim_text(claim)}, saw {value_text(claim.key, surprise.seen)}"
    return f"{text}; {time_us(surprise.time_at_stake_us)} at stake" if surprise.time_at_stake_us else text


def why_text(one: Ranked) -> str:
    """Who guessed it and why, what explains it, and what the leaf ops of a CPU are."""
    claim = one.surprise.claim
    parts = [f"{claim.who}: {printable(claim.why)}" if claim.why else claim.who]
    known = join(one.surprise.explained_by)
    parts.append(f"explained by {known}" if known else "unexplained: no finding accounts for it")
    if claim.key == "leaf_ops" and (leaves := leaf_text(one.outcome)):
        parts.append(leaves)
    if not one.findings and one.surprise.evidence:
        parts.append(evidence_text(one.surprise.evidence))
    return "; ".join(parts)


def finding_parts(finding: Finding) -> list[tuple[str, str]]:
    """Cause, fix and evidence of a finding, as far as it has them."""
    parts = [("cause", finding.cause), ("fix", finding.fix), ("evidence", evidence_text(finding.evidence))]
    return [(word, printable(said)) for word, said in parts if said]


def evidence_text(events: Sequence[int]) -> str:
    """List the first few positions in the trace's events."""
    shown = ", ".join(str(event) for event in events[:EVIDENCE_SHOWN])
    more = f" and {len(events) - EVIDENCE_SHOWN} more" if len(events) > EVIDENCE_SHOWN else ""
    return f"trace events {shown}{more}" if events else ""


def _explaining(outcome: Outcome, surprise: Surprise) -> tuple[Finding, ...]:
    look = outcome.look
    if look is None:
        return ()
    found = [one for one in look.checked.findings if one.id in surprise.explained_by]
    here = [one for one in found if one.scope == surprise.claim.scope]
    return tuple(here or found)


def _reason_text(outcome: Outcome) -> str:
    """Why a variant was not run here, and what is shown in its place."""
    stand_in = f" Shown as recorded on an {outcome.device.name}." if outcome.status == "recorded" else ""
    text = f"{outcome.reason}{'' if outcome.reason.endswith('.') or not stand_in else '.'}{stand_in}"
    return printable(text)
