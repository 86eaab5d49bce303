"""What was unexpected in the attention series: surprises by time at stake, and what else the checks saw."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tracehunch.attention.leaves import BOOKKEEPING, leaf_text, leaves_of, work_text
from tracehunch.attention.outcome import Outcome, Series, looks
from tracehunch.judge.explain import EXPERT
from tracehunch.report.attention_words import claim_text, value_text
from tracehunch.units import join, printable, time_us
from tracehunch.verdict import SEVERITIES, Finding, Surprise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.guess.model import Claim, Who

EVIDENCE_SHOWN: Final = 6
_NAMED: Final = 3
NO_NEWS: Final = "unfused-attention"
"""That variants by hand are by hand."""

_CALLED: Final[dict[Who, str]] = {
    "user": "you", "textbook": "the textbook", "expert": "the expert", "baseline": "the baseline",
}  # fmt: skip
_LEADING: Final[tuple[Who, ...]] = ("user", "expert", "textbook")
_UNEXPLAINED: Final = "PyTorch did otherwise than the expert's rules say"
_SENTENCE: Final = re.compile(r".+?\.(?= [A-Z])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A surprise, with the findings that explain it; ``names`` are the variants that it came out alike in.

    ``who`` guessed it. Where the user, the textbook or the expert guessed alike, it is one surprise of all.
    """

    outcome: Outcome
    surprise: Surprise
    findings: tuple[Finding, ...]
    names: tuple[str, ...]
    who: tuple[Who, ...]

    @property
    def misses_expert(self) -> bool:
        """Whether the expert guess broke by more than a time: nothing is more interesting."""
        return "expert" in self.who and not is_time_miss(self.surprise)


def is_time_miss(surprise: Surprise) -> bool:
    """Whether the expert missed a time, or which op leads: models of time miss one in ten."""
    claim = surprise.claim
    return claim.who == "expert" and (claim.unit == "us" or claim.key == "dominant")


def surprises(series: Series) -> list[Ranked]:
    """List the surprises of each variant: where the expert is wrong, then by the most time at stake."""
    found = [one for outcome, look in looks(series) for one in _of_variant(outcome, look.verdict.surprises)]
    return sorted(
        found,
        key=lambda one: (
            not one.misses_expert,
            -one.surprise.time_at_stake_us,
            -SEVERITIES.index(one.surprise.severity),
        ),
    )


def order_text(ranked: Sequence[Ranked]) -> str:
    """Say how the surprises are ordered."""
    misses = any(one.misses_expert for one in ranked)
    return f"{'what the expert did not expect, then ' if misses else ''}most time at stake first"


def merged(series: Series) -> list[Ranked]:
    """List the surprises as ``surprises``, but once what came out alike in several variants."""
    alike: dict[object, Ranked] = {}
    for one in surprises(series):
        key = (one.who, *_guessed(one.surprise), one.surprise.seen, one.surprise.explained_by)
        key = (*key, one.outcome.device, one.outcome.workload)
        first = alike.get(key)
        alike[key] = one if first is None else replace(first, names=(*first.names, *one.names))
    return list(alike.values())


def others(series: Series) -> list[tuple[str, Finding]]:
    """List findings that no surprise rests on, each once with its variants, the most time at stake first.

    What stands in for variants that could not run is no news of this machine, and is left out.
    """
    told = {(one.outcome.variant.name, finding.id) for one in surprises(series) for finding in one.findings}
    ran = any(outcome.status == "ran" for outcome in series.outcomes)
    users: dict[tuple[str, str], list[str]] = {}
    first: dict[tuple[str, str], Finding] = {}
    for outcome, look in looks(series):
        for finding in () if ran and outcome.status == "recorded" else look.checked.findings:
            if (outcome.variant.name, finding.id) not in told and finding.id != NO_NEWS:
                users.setdefault((finding.id, finding.summary), []).append(outcome.variant.name)
                first.setdefault((finding.id, finding.summary), finding)
    left = [(", ".join(users[key]), finding) for key, finding in first.items()]
    return sorted(left, key=lambda pair: (-pair[1].time_at_stake_us, -SEVERITIES.index(pair[1].severity)))


def cannot_tell(series: Series) -> list[tuple[str, str]]:
    """List what the traces cannot decide, each once with its variants, and how to record so that they can."""
    users: dict[str, list[str]] = {}
    for outcome, look in looks(series):
        for one in (*look.verdict.cannot_tell, *look.checked.cannot_tell):
            record = f"; record with {one.record_with}" if one.record_with else ""
            users.setdefault(printable(f"{one.key}: {one.reason}{record}"), []).append(outcome.variant.name)
    return [(_few(names), said) for said, names in users.items()]


def _few(names: list[str]) -> str:
    """Name some variants, and how many more there are."""
    shown = names if len(names) <= _NAMED else names[: _NAMED - 1]
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if shown is not names else "")


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
    told = "" if one.who == ("textbook",) else f"{join([_CALLED[who] for who in one.who])} "
    text = f"{told}guessed {claim_text(claim)}, saw {value_text(claim.key, surprise.seen)}"
    text += ", as the expert guessed" if _expert_right(one) is not None else ""
    return f"{text}; {time_us(surprise.time_at_stake_us)} at stake" if surprise.time_at_stake_us else text


def why_text(one: Ranked) -> str:
    """Who guessed it and why, and what explains it."""
    claim = one.surprise.claim
    guessed = f"{claim.who}: {printable(claim.why)}" if claim.why else claim.who
    return f"{guessed}; {explained_text(one)}"


def explained_text(one: Ranked) -> str:
    """Tell what explains it, what the leaf ops of a CPU are, and where no finding says it, the evidence."""
    known = [word for word in one.surprise.explained_by if word not in (BOOKKEEPING, EXPERT)]
    parts = [f"explained by {join(known)}"] if known else []
    if EXPERT in one.surprise.explained_by:
        right = _expert_right(one)
        why = f": {printable(right.why)}" if right is not None and right.why else ""
        parts.append(f"explained by the expert guess, which held{why}")
    if not one.surprise.explained_by:
        parts.append(f"unexplained: {_UNEXPLAINED if 'expert' in one.who else 'no finding accounts for it'}")
    parts += _leaf_texts(one)
    if not one.findings and one.surprise.evidence:
        parts.append(evidence_text(one.surprise.evidence))
    return "; ".join(parts)


def main_and_parts(one: Ranked) -> tuple[list[Finding], list[Finding]]:
    """Split the findings that explain a surprise: those with time of their own, and those counted in them."""
    main = [finding for finding in one.findings if finding.time_at_stake_us > 0] or list(one.findings[:1])
    return main, [finding for finding in one.findings if finding not in main]


def first_sentence(text: str) -> str:
    """Return a text up to its first full stop that ends a sentence."""
    found = _SENTENCE.match(text)
    return found[0] if found else text


def finding_parts(finding: Finding) -> list[tuple[str, str]]:
    """Cause, fix and evidence of a finding, as far as it has them."""
    parts = [("cause", finding.cause), ("fix", finding.fix), ("evidence", evidence_text(finding.evidence))]
    return [(word, printable(said)) for word, said in parts if said]


def evidence_text(events: Sequence[int]) -> str:
    """List the first few positions in the trace's events."""
    shown = ", ".join(str(event) for event in events[:EVIDENCE_SHOWN])
    more = f" and {len(events) - EVIDENCE_SHOWN} more" if len(events) > EVIDENCE_SHOWN else ""
    return f"trace events {shown}{more}" if events else ""


def _of_variant(outcome: Outcome, broken: Sequence[Surprise]) -> Iterator[Ranked]:
    """Yield one variant's surprises; a miss that several share is one, the user's before the expert's."""
    alike: dict[tuple[object, ...], dict[Who, Surprise]] = {}
    for one in broken:
        alike.setdefault(_guessed(one), {})[one.claim.who] = one
    for shared in alike.values():
        first = next((shared[who] for who in _LEADING if who in shared), next(iter(shared.values())))
        who = tuple(sorted(shared, key=list(_CALLED).index))
        yield Ranked(outcome, first, _explaining(outcome, first), (outcome.variant.name,), who)


def _expert_right(one: Ranked) -> Claim | None:
    """Return the expert's claim about the same, if it has one and that held."""
    look, claim = one.outcome.look, one.surprise.claim
    held = () if look is None else look.verdict.held
    here = [told.claim for told in held if told.claim.who == "expert" and told.claim.key == claim.key]
    return next((told for told in here if told.scope == claim.scope), None)


def _guessed(surprise: Surprise) -> tuple[object, ...]:
    claim = surprise.claim
    return claim.key, claim.relation, claim.expected, claim.scope


def _leaf_texts(one: Ranked) -> list[str]:
    """Tell what the leaf ops of a CPU are, and which ops do the work."""
    outcome = one.outcome
    if one.surprise.claim.key != "leaf_ops" or outcome.look is None or outcome.scope is None:
        return []
    leaves = leaves_of(outcome.scope, outcome.look.facts.tree)
    if leaves is None:
        return []
    shown = (leaf_text(leaves), work_text(leaves) if BOOKKEEPING in one.surprise.explained_by else "")
    return [text for text in shown if text]


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
