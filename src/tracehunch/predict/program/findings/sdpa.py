"""sdpa-math-fallback, mask-rebuilt, sdpa-known-hazard: SDPA that no fused kernel takes, or that bites."""

from collections.abc import Iterator, Sequence
from typing import Final

from tracehunch.predict.attention.fused import dims_of
from tracehunch.predict.ops.dtypes import HALF, dtype_word
from tracehunch.predict.program.attention import pinned
from tracehunch.predict.program.findings._run import (
    Run,
    at_line,
    grouped,
    kind_of_module,
    launches,
    line_of,
    modules_of,
    scope_of,
    us_of,
)
from tracehunch.predict.program.model import CallGuess, Foreseen
from tracehunch.predict.program.sdpa_calls import described, refusals
from tracehunch.predict.roofline import AttentionTime
from tracehunch.predict.roofline.time import attention_time
from tracehunch.predict.sdpa import SdpaCall, hazards
from tracehunch.units import count, plural, ratio, time_range_us, time_us

MATH: Final = "sdpa-math-fallback"
MASK: Final = "mask-rebuilt"
HAZARD: Final = "sdpa-known-hazard"
_MASK_OPS: Final = ("aten::tril",)


def math_fallbacks(run: Run) -> Iterator[Foreseen]:
    """Report calls that run as a chain of ordinary ops."""
    found = [one for one in run.calls if one.sdpa is not None and one.sdpa.ran == "math"]
    for same in grouped(found, _alike).values():
        forward = [one for one in same if one.call.phase != "backward"]
        if forward:
            yield from _math(run, same, forward)


def _alike(one: CallGuess) -> tuple[str, SdpaCall | None]:
    return kind_of_module(one.call.module), one.call.sdpa


def _math(run: Run, same: Sequence[CallGuess], forward: Sequence[CallGuess]) -> Iterator[Foreseen]:
    first = forward[0]
    call, picked = first.call.sdpa, first.sdpa
    assert call is not None
    assert picked is not None
    spent, each = us_of(same), us_of(forward) / len(forward)
    expected = _fused(run, call, backward=len(same) > len(forward))
    saved = 0.0 if expected is None else max(spent - len(forward) * expected.high_us, 0.0)
    slower = "" if expected is None or each <= expected.high_us else _slower(each, expected)
    why = "; ".join(refusals(picked)) or "no fused backend takes the call"
    needs = (
        ""
        if expected is None
        else (
            f" A fused kernel is expected to need {time_range_us(expected.low_us, expected.high_us)} a "
            "call; at stake is "
            "what lies above the upper end."
        )
    )
    yield Foreseen(
        id=MATH,
        scope=scope_of(forward),
        severity=run.severity(spent, saved) if saved else "note",
        confidence="high",
        time_at_stake_us=saved,
        summary=f"SDPA runs its math fallback for {described(call)}: "
        f"{plural(launches(first), 'GPU activity', 'GPU activities')} and {time_us(each)} a call, "
        f"{plural(len(forward), 'call')}{slower}{at_line(forward)}",
        cause=f"{why}.{needs}",
        fix=_todo(first) or "Give it 4-dimensional inputs of 16 bits with a contiguous last dimension.",
        modules=modules_of(forward),
        line=line_of(forward),
        subject="aten::_scaled_dot_product_attention_math",
        count=len(forward),
    )
    if call.is_causal:
        yield from _mask(run, forward)


def _slower(each: float, expected: AttentionTime) -> str:
    return (
        f", about {ratio(each / expected.high_us)} to {ratio(each / expected.low_us)} a fused kernel's time"
    )


def _fused(run: Run, call: SdpaCall, *, backward: bool) -> AttentionTime | None:
    """Return what a fused kernel would take, were there one for these inputs."""
    if not call.four_dimensional or call.q.shape[1] % max(call.k.shape[1], 1):
        return None
    word = dtype_word(call.q.dtype)
    backend = "flash" if word in HALF else "efficient"
    found = attention_time(
        backend, dims_of(call), word, call.is_causal, run.env.gpu, mask=call.mask is not None,
        dropout=call.dropout > 0, clock="gpu",
    )  # fmt: skip
    if not isinstance(found, AttentionTime) or backward:
        return found if isinstance(found, AttentionTime) else None
    return found


def _todo(one: CallGuess) -> str:
    """Return what to change for the backend that refuses least."""
    answers = [] if one.sdpa is None else [answer for answer in one.sdpa.answers if answer.rejections]
    fused = [answer for answer in answers if answer.backend != "math"]
    if not fused:
        return ""
    best = min(fused, key=lambda answer: len(answer.rejections))
    todo = "; ".join(dict.fromkeys(rejection.todo for rejection in best.rejections))
    return f"For {best.backend}: {todo}."


def _mask(run: Run, same: Sequence[CallGuess]) -> Iterator[Foreseen]:
    call = same[0].call.sdpa
    assert call is not None
    parts = [part for one in same for part in one.parts if part.op in _MASK_OPS]
    spent = 3 * sum(part.activities.time.mid_us for part in parts if part.activities.time is not None)
    if not spent:
        return
    queries, keys = call.q.shape[-2], call.k.shape[-2]
    yield Foreseen(
        id=MASK,
        scope=scope_of(same),
        severity="note",
        confidence="medium",
        time_at_stake_us=spent,
        summary=f"the causal mask of {count(queries)} x {count(keys)} is made anew in each of "
        f"{plural(len(same), 'call')}, about {time_us(spent)}{at_line(same)}",
        cause="The math fallback has no causal kernel: it builds the mask (ones, tril, where) in every call.",
        fix="Get a fused backend to run (see sdpa-math-fallback), or build the mask once and pass it as "
        "attn_mask.",
        modules=modules_of(same),
        line=line_of(same),
        subject="aten::tril",
        count=len(same),
        small=not run.is_noticeable(spent),
    )


def known_hazards(run: Run) -> Iterator[Foreseen]:
    """Report what is known to go wrong with calls of SDPA, where the call alone tells."""
    found = [one for one in run.calls if one.sdpa is not None and one.call.phase != "backward"]
    trains = any(one.sdpa is not None and one.call.phase == "backward" for one in run.calls)
    for same in grouped(found, _alike).values():
        call, picked = same[0].call.sdpa, same[0].sdpa
        assert call is not None
        for hazard in hazards(call, pinned(same[0].call, run.env), picked):
            if hazard.in_trace is None or (hazard.of_backward and not trains):
                continue
            yield Foreseen(
                id=HAZARD,
                scope=scope_of(same),
                severity=hazard.in_trace,
                confidence="high" if hazard.certain else "medium",
                time_at_stake_us=0.0,
                summary=f"{plural(len(same), 'SDPA call')} ({described(call)}): "
                f"{hazard.words}{at_line(same)}",
                cause=f"Reported at {', '.join(hazard.links)}.",
                fix=f"{hazard.todo[:1].upper()}{hazard.todo[1:]}.",
                modules=modules_of(same),
                line=line_of(same),
                subject=hazard.id,
                count=len(same),
            )
