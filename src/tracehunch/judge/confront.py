"""Claims -> the facts they are about, and whether they hold; or why the trace cannot tell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tracehunch.facts.compiled.lacks import none_compiled, why_not_compiled
from tracehunch.facts.lacks import why_no_work
from tracehunch.facts.model import Fact, Facts, ScopeFacts
from tracehunch.facts.vocabulary import KEYS
from tracehunch.guess.model import Claim
from tracehunch.guess.scopes import scopes_named, why_missing
from tracehunch.judge.compare import fits, holds
from tracehunch.judge.leads import ops_lead
from tracehunch.judge.merged import decide
from tracehunch.verdict import CannotTell


@dataclass(frozen=True, slots=True)
class Told:
    """A claim that a fact decides; its scope is the one found, whatever the claim called it."""

    claim: Claim
    fact: Fact
    scope: ScopeFacts
    holds: bool


def confront(claims: Sequence[Claim], facts: Facts) -> Iterator[Told | CannotTell]:
    """Hold each claim against the fact of every scope it is about."""
    scopes = {name: scopes_named(name, facts) for name in dict.fromkeys(claim.scope for claim in claims)}
    for claim in claims:
        if not scopes[claim.scope]:
            yield CannotTell(claim.key, claim.scope, *why_missing(claim.scope, facts))
        for scope in scopes[claim.scope]:
            yield _confront_one(replace(claim, scope=scope.scope.name), scope, facts)


def _confront_one(claim: Claim, scope: ScopeFacts, facts: Facts) -> Told | CannotTell:
    if claim.relation == "merged":
        outcome = decide(claim, scope, facts)
        return outcome if isinstance(outcome, CannotTell) else Told(claim, outcome[0], scope, outcome[1])
    fact = scope.facts.get(claim.key) or none_compiled(claim.key, facts.tree)
    if fact is None:
        return CannotTell(claim.key, claim.scope, *why_absent(claim.key, scope, facts))
    if not fits(claim, fact.value):
        reason = f"the claim {claim.expected!r} and the fact {fact.value!r} cannot be compared"
        return CannotTell(claim.key, claim.scope, reason)
    if claim.relation == "leads":
        claimed = claim.expected if isinstance(claim.expected, tuple) else (claim.expected,)
        seen, leading = ops_lead([str(op) for op in claimed], fact, scope.scope, facts.tree)
        return Told(claim, seen, scope, leading)
    return Told(claim, fact, scope, holds(claim, fact.value))


def why_absent(key: str, scope: ScopeFacts, facts: Facts) -> tuple[str, str]:
    """Why a scope has no such fact, and what would record it ("" if it was recorded, and is not there)."""
    if key not in KEYS:
        return "no such fact is known", ""
    why = why_no_work(key, scope, facts.tree.trace) or why_not_compiled(key, scope, facts.tree)
    if why is not None:
        return why
    recorded, needs = facts.tree.trace.header.recorded, KEYS[key].needs
    if "record_shapes" in needs and not recorded.shapes:
        return "tensor shapes were not recorded", needs
    if "profile_memory" in needs and not recorded.memory:
        return "memory was not recorded", needs
    if "CUDA" in needs and not len(facts.tree.trace.gpu.row):
        return "no GPU activity was recorded", needs
    return f"this scope does not show it ({KEYS[key].meaning})", ""
