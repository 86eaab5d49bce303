"""Guesses and what was seen, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.units import join, plural, printable, time_range_us, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.attention.expert import Expert
    from tracehunch.attention.outcome import Outcome
    from tracehunch.guess import Claim

_COUNTED: Final = {
    "kernels": ("kernel",),
    "copies": ("copy", "copies"),
    "leaf_ops": ("leaf op",),
    "memsets": ("memset",),
}
_TIMES: Final = {"gpu_time": "GPU time", "cpu_time": "CPU time"}
_NAMED: Final = {"sdpa.backend": "backend", "tensor_cores": "tensor cores"}
_RELATIONS: Final = {
    "==": "",
    "<=": "at most ",
    "<": "less than ",
    ">=": "at least ",
    ">": "more than ",
    "~": "about ",
}


def guess_text(claims: Sequence[Claim]) -> str:
    """``5 kernels, 0 copies, tensor cores used``."""
    return ", ".join(claim_text(claim) for claim in claims)


def expert_text(expert: Expert) -> str:
    """Say what the expert guesses, be it that the call raises."""
    if expert.raises is not None:
        return f"that it raises: {printable(expert.raises)}"
    return guess_text(expert.guess.claims)


def claim_text(claim: Claim) -> str:
    """One claim in words: ``5 kernels``, ``at most 20 kernels``, ``GPU time less than 1.064 ms``."""
    if claim.relation == "leads":
        return f"{value_text(claim.key, claim.expected)} leading"
    if claim.relation == "in" and isinstance(claim.expected, tuple):
        low, high = claim.expected
        if claim.key in _TIMES and isinstance(low, int | float) and isinstance(high, int | float):
            return f"{time_range_us(low, high)} of {_TIMES[claim.key]}"
        return f"{claim.expected[0]} to {value_text(claim.key, claim.expected[1])}"
    return f"{_RELATIONS[claim.relation]}{value_text(claim.key, claim.expected)}"


def value_text(key: str, value: object) -> str:
    """Write a value with what it counts or measures."""
    if key in _COUNTED and isinstance(value, int | float):
        return plural(value, *_COUNTED[key])
    if key in _TIMES and isinstance(value, int | float):
        return f"{time_us(value)} of {_TIMES[key]}"
    text = join([printable(str(one)) for one in value]) if isinstance(value, tuple) else printable(str(value))
    return f"{_NAMED[key]} {text}" if key in _NAMED else text


def seen_text(outcome: Outcome) -> str:
    """``saw 5 kernels, 1 copy in 1.064 ms``, or why there was nothing to see."""
    scope = outcome.scope
    if scope is None:
        return f"not looked at: {printable(outcome.reason)}"
    keys = ("kernels", "copies", "memsets") if outcome.device.kind == "cuda" else ("leaf_ops",)
    counts = [value_text(key, value) for key in keys if (value := scope.value(key)) is not None]
    text = f"saw {', '.join(counts)}"
    return text if outcome.time_us is None else f"{text} in {time_us(outcome.time_us)}"


def own_lines(outcome: Outcome) -> list[str]:
    """How each of the user's own claims came out."""
    if outcome.look is None:
        return []
    verdict = outcome.look.verdict
    right = [f"right: {claim_text(one.claim)}" for one in verdict.held if one.claim.who == "user"]
    wrong = [
        f"wrong: {claim_text(one.claim)}; it is {value_text(one.claim.key, one.seen)}"
        for one in verdict.surprises
        if one.claim.who == "user"
    ]
    return right + wrong
