"""Ops that a claim says lead and that the trace has not, though it has one of much the same name."""

from difflib import get_close_matches
from typing import Final

from tracehunch.facts.model import Facts
from tracehunch.guess.model import Claim
from tracehunch.guess.op_scope import op_names
from tracehunch.judge.leads import plain_name

_ALIKE: Final = 0.85
_LONGEST: Final = 64


def slip_in(claim: Claim, facts: Facts) -> str:
    """Say which claimed op the trace has not, and which it has that may be meant; "" where none is near.

    Names of another namespace are taken as they are.
    """
    if claim.relation != "leads":
        return ""
    claimed = claim.expected if isinstance(claim.expected, tuple) else (claim.expected,)
    by_length = sorted(op_names(facts), key=len, reverse=True)  # of names alike the shortest is called
    there = {plain_name(name): name for name in by_length if len(name) <= _LONGEST}
    return next(filter(None, (_slip(str(op), there) for op in claimed)), "")


def _slip(op: str, there: dict[str, str]) -> str:
    word = plain_name(op)
    if word in there or len(op) > _LONGEST or "::" in op.removeprefix("aten::"):
        return ""
    near = get_close_matches(word, there, n=1, cutoff=_ALIKE)
    return f"the trace has no op {op}: did you mean {there[near[0]]}?" if near else ""
