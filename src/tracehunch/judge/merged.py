"""Claims that ops were merged in one generated kernel -> the fact that decides them, or why none does."""

from typing import cast

from tracehunch.facts.compiled.together import merged_together
from tracehunch.facts.model import Fact, Facts, ScopeFacts
from tracehunch.guess.model import Claim
from tracehunch.verdict import CannotTell


def decide(claim: Claim, scope: ScopeFacts, facts: Facts) -> tuple[Fact, bool] | CannotTell:
    """Return what was seen, and whether the claim holds of it.

    What is seen are the claimed ops where they run in one kernel, and else where each of them runs.
    """
    ops = cast("tuple[str, ...]", claim.expected)  # as the grammar of this relation makes them
    found = merged_together(ops, scope.scope, facts.tree)
    if found.holds is None:
        return CannotTell(claim.key, claim.scope, found.reason, found.record_with)
    return Fact(claim.key, found.seen or ops, "text", rows=found.rows), found.holds
