"""The questions of ``--ask``: what a person types, as claims, and how well they guessed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tracehunch.attention.outcome import Device, Outcome, time_key
from tracehunch.errors import GuessError
from tracehunch.guess import Claim, Guess, Relation
from tracehunch.guess.claims import claims_from_mapping
from tracehunch.guess.words import CHOICES, fact_word
from tracehunch.verdict import Verdict

if TYPE_CHECKING:
    from tracehunch.attention.variant import Variant
    from tracehunch.attention.workload import Workload


@dataclass(frozen=True, slots=True)
class Question:
    """One question and the key that its answer claims; ``previous_us`` is what "faster" compares with."""

    text: str
    key: str
    previous_us: float | None = None


def questions(workload: Workload, device: Device, last: Outcome | None) -> tuple[Question, ...]:
    """Ask about one forward; whether it is faster only after one that did the same work here."""
    asked = _GPU if device.kind == "cuda" else _CPU
    if last is None or last.time_us is None or (last.device, last.workload) != (device, workload):
        return asked
    text = f"faster, slower or same as {last.variant.name}"
    return (*asked, Question(text, time_key(device.kind), last.time_us))


def claim(question: Question, answer: str, variant: Variant) -> Claim:
    """Make the claim that an answer makes.

    Raises:
        GuessError: the answer cannot be understood; the text says what to write.

    """
    if question.previous_us is not None:
        return _comparison(question.key, question.previous_us, answer, variant.label)
    value: object = answer.strip()
    if re.fullmatch(r"-\s*\d.*", answer.strip()):
        raise GuessError(f"{answer.strip()!r} is less than nothing", "", "write a number like 5")
    if question.key == "sdpa.backend":
        value = _backend(answer)
    if question.key == "dominant":
        value = [_op(part.strip()) for part in answer.split(",")]
    return claims_from_mapping(variant.label, {question.key: value})[0]


def own_guess(guess: Guess) -> Guess:
    """Take the user's part of a guess."""
    return replace(guess, claims=tuple(one for one in guess.claims if one.who == "user"))


def own_verdict(outcome: Outcome) -> Verdict:
    """Tell what became of the user's claims alone."""
    if outcome.look is None:
        return Verdict()
    verdict = outcome.look.verdict
    held = tuple(one for one in verdict.held if one.claim.who == "user")
    surprises = tuple(one for one in verdict.surprises if one.claim.who == "user")
    told = {one.claim.key for one in held} | {one.claim.key for one in surprises}
    untold = {one.key for one in own_guess(outcome.guess).claims} - told
    return Verdict(held, surprises, tuple(one for one in verdict.cannot_tell if one.key in untold))


_BACKEND = Question("SDPA backend (none, math, efficient, flash, cudnn)", "sdpa.backend")
_GPU = (
    Question("kernels a forward", "kernels"),
    Question("copies a forward", "copies"),
    _BACKEND,
    Question("which op takes the most GPU time", "dominant"),
)
_CPU = (
    Question("leaf ops (ops without children) a forward", "leaf_ops"),
    _BACKEND,
    Question("which op takes the most time", "dominant"),
)

_WORDS: dict[str, Relation] = {"faster": "<", "slower": ">", "same": "~"}


_MEANT: dict[str, str] = {
    "sdpa": "scaled_dot_product_attention", "attention": "scaled_dot_product_attention",
    "flash": "_scaled_dot_product_flash_attention", "gemm": "matmul", "mask": "masked_fill", "scale": "mul",
    "exp": "softmax", "memcpy": "copy_",
}  # fmt: skip
"""What people call it -> the op."""

_OPS = (
    "matmul", "bmm", "mm", "baddbmm", "mul", "div", "masked_fill", "softmax", "safe_softmax", "where", "copy",
    "clone", "contiguous", "to_copy", "fill", "zero", "ones", "tril", "triu", "add", "sub", "eq", "all",
    "any", "logical_not", "zeros_like", "transpose", "expand", "repeat_interleave", "index_select", "dropout",
    "scaled_dot_product_attention", "scaled_dot_product_attention_math", "scaled_dot_product_flash_attention",
    "scaled_dot_product_flash_attention_for_cpu", "scaled_dot_product_efficient_attention",
    "scaled_dot_product_cudnn_attention", "scaled_dot_product_fused_attention_overrideable",
    "flash_attention_forward", "efficient_attention_forward", "cudnn_attention_forward",
)  # fmt: skip
"""Ops that attention may consist of, as people say them (``plain``)."""


def _backend(answer: str) -> str | list[str]:
    """Read one or several backends.

    Raises:
        GuessError: there is no such backend.

    """
    words = [fact_word("sdpa.backend", part.strip().lower()) for part in answer.split(",")]
    known = CHOICES["sdpa.backend"]
    for word in words:
        if word not in known:
            raise GuessError(f"there is no SDPA backend {word!r}", "", f"there are {', '.join(known)}")
    return words[0] if len(words) == 1 else words


def _op(written: str) -> str:
    """Take an op's name; one with its namespace (``aten::...``) as it stands.

    Raises:
        GuessError: attention has no such op.

    """
    plain = written.strip("_").lower()
    if "::" in written or plain in _OPS:
        return written
    near = [_MEANT[plain]] if plain in _MEANT else get_close_matches(plain, _OPS, n=1)
    todo = f"did you mean {near[0]}?" if near else "such as matmul, mul, masked_fill or softmax"
    raise GuessError(f"{written!r} is no op of attention", "", todo)


def _comparison(key: str, previous_us: float, answer: str, label: str) -> Claim:
    meant = [word for word in _WORDS if answer.strip() and word.startswith(answer.strip().lower())]
    if len(meant) != 1:
        raise GuessError(f"{answer.strip()!r} is not understood", "", "write faster, slower or same")
    why = f"{meant[0]} as the last" if meant[0] == "same" else f"{meant[0]} than the last"
    return Claim(key, _WORDS[meant[0]], previous_us, label, "user", why, unit="us")
