"""unfused-attention: attention is written out as matmul, softmax, matmul.

## What it means
A softmax stands between two matrix products that fit each other as queries times keys and weights times
values do, with the scale, the mask, casts or dropout in between: attention by hand. It was found by
structure, from the order of the ops and, where recorded, their shapes. Each step is a kernel that writes the
whole score matrix (query length times key length, for every head) to memory, and the next one reads it back.
The math fallback of `scaled_dot_product_attention` is another matter: see `sdpa-math-fallback`.

## Why it costs
The scores are far larger than queries, keys and values together, and each step moves them once or twice, so
that memory sets the pace. A fused kernel keeps them on the chip and skips what a causal mask hides; on an
H200 it was 2 to 20 times faster. The memory for the scores grows with the square of the length, and training
keeps several copies of them for the backward.

## How to confirm
Open the trace at the events given as evidence: a `bmm`, elementwise kernels, a softmax, a `bmm`. Record with
`record_shapes=True` to get the bytes, and the time from the sizes.

## How to fix
Call `torch.nn.functional.scaled_dot_product_attention(q, k, v)` in place of the whole chain: with
`is_causal=True` for a causal mask, `attn_mask=` for any other mask or bias that is added, `scale=` for
another scale than one over the root of the head dimension, `dropout_p=` in training, `enable_gqa=True` in
place of repeating heads. In Hugging Face models: `attn_implementation="sdpa"`; `nn.MultiheadAttention` needs
`need_weights=False`. What changes the scores in other ways (soft capping, sinks) can be a `flex_attention`.
torch.compile alone merges the steps between the products, and only some spellings become a fused attention.

## When it is fine
Where the weights themselves are the result (to look at, or for a loss on them): no fused kernel returns
them. For few keys and queries, where the chain takes no longer than a fused kernel would.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.checks._activities import on_cpu_alone, on_gpu
from tracehunch.checks._attention_backward import backward_rows
from tracehunch.checks._attention_by_hand import Sizes, is_generated
from tracehunch.checks._attention_work import ByHand, attention_by_hand
from tracehunch.checks._fused_time import Estimate
from tracehunch.checks._peaks import gpu_of
from tracehunch.checks._scopes import Placement, durations_us, place, place_ops
from tracehunch.checks._score_traffic import Traffic, element_bytes, score_traffic
from tracehunch.checks._sdpa_inputs import HALF
from tracehunch.checks._sdpa_time import is_fusible, sdpa_estimate
from tracehunch.checks._weight import is_material, is_noticeable, severity_of_elapsed
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.units import count, plural, size, time_range_us, time_us
from tracehunch.verdict import CannotTell, Confidence, Finding

ID: Final = "unfused-attention"
_SHOWN: Final = 8
"""Ops that the text names."""
_LEAST_PART: Final = 0.25
"""Part of the chain's time that has to be saved: the expected times are ranges, and less is no promise."""


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find attention by hand by scope, with what SDPA is expected to take in its place."""
    if not on_gpu(facts) and not on_cpu_alone(facts):
        return
    found = attention_by_hand(facts)
    where = place(facts) if on_gpu(facts) else place_ops(facts)
    parts = _parts(facts, [one for one in found.by_hand if is_fusible(one)])
    by_scope: dict[int, list[_Part]] = {}
    for part in parts:
        by_scope.setdefault(int(where.scope[part.rows[0]]), []).append(part)
    for number, mine in sorted(by_scope.items()):
        if number != NONE:
            yield from _finding(facts, facts.scopes[number], mine)
    for scope, rows in where.by_scope(np.unique(found.unsure)):
        if is_material(facts, scope, where.per_call_us(scope, rows)):
            yield _untold(where, scope, rows)


@dataclass(frozen=True, slots=True)
class _Part:
    """The forward of one attention by hand, or its backward, and what SDPA would take for that."""

    one: ByHand
    backward: bool
    rows: Int64
    us: float
    estimate: Estimate

    @property
    def saved_us(self) -> float:
        return max(self.us - self.estimate.high_us, 0.0)


def _parts(facts: Facts, by_hand: Sequence[ByHand]) -> list[_Part]:
    parts = [_part(facts, one, one.rows, backward=False) for one in by_hand]
    for one, rows in zip(by_hand, backward_rows(facts, by_hand), strict=True):
        if rows.size:
            parts.append(_part(facts, one, rows, backward=True))
    return [part for part in parts if part.estimate.high_us > 0]  # else nothing is known to hold it against


def _part(facts: Facts, one: ByHand, rows: Int64, *, backward: bool) -> _Part:
    spent = float(durations_us(facts.tree.trace, rows).sum())
    return _Part(one, backward, rows, spent, sdpa_estimate(facts, one, backward=backward))


def _finding(facts: Facts, scope: ScopeFacts, parts: list[_Part]) -> Iterable[Finding]:
    calls = len(scope.scope.calls)
    saved, spent = (sum(part.saved_us for part in parts) / calls, sum(part.us for part in parts) / calls)
    if saved < _LEAST_PART * spent or not is_noticeable(facts, scope, saved):
        return
    tree, rows = facts.tree, np.unique(np.concatenate([part.rows for part in parts]))
    largest = max(parts, key=lambda part: part.us)
    forward = [part for part in parts if not part.backward]
    number = round(len(forward or parts) / calls, 1)
    low, high = (sum(getattr(part.estimate, end) for part in parts) / calls for end in ("low_us", "high_us"))
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity=severity_of_elapsed(facts, scope, rows, saved),
        confidence=_confidence(facts, largest.one),
        time_at_stake_us=saved,
        summary=f"{_what(parts)} by hand, {_times(number)} a call: "
        f"{_steps(facts, rows, calls)}, {time_us(spent)}, where scaled_dot_product_attention is expected "
        f"to take {time_range_us(low, high)}{at_source(tree, largest.one.chain.softmax_op)}",
        cause=f"{_chain(facts, largest.one)}{_moved(facts, largest.one)} The expected time was estimated "
        f"{largest.estimate.how}; at stake is what lies above its upper end.",
        fix=_fix(largest.one),
        evidence=tree.trace.events(np.unique(np.concatenate([rows, *(part.one.called for part in parts)]))),
        subject=tree.trace.name_of(largest.one.chain.softmax_op),
        per_call=number,
    )


def _what(parts: list[_Part]) -> str:
    kinds = {part.backward for part in parts}
    if kinds == {True}:
        return "the backward of attention"
    return "attention and its backward" if len(kinds) > 1 else "attention"


def _times(number: float) -> str:
    return "once" if number == 1 else plural(number, "time")


def _steps(facts: Facts, rows: Int64, calls: int) -> str:
    return plural(
        round(rows.size / calls, 1), "GPU activity" if on_gpu(facts) else "op", _MANY[on_gpu(facts)]
    )


_MANY: Final = {True: "GPU activities", False: "ops"}


def _confidence(facts: Facts, one: ByHand) -> Confidence:
    if one.sizes is None:
        return "low" if gpu_of(facts) is None else "medium"
    return "medium" if one.sizes.batch == 1 or gpu_of(facts) is None else "high"


def _chain(facts: Facts, one: ByHand) -> str:
    """Write the ops of an attention in order, as ``matmul, mul, softmax, matmul``."""
    trace = facts.tree.trace
    in_time = one.called[np.argsort(trace.start_ns[one.called], kind="stable")]
    names = [_short(trace.name_of(int(row))) for row in in_time if row != NONE]
    shown = [*names[: _SHOWN - 1], "...", names[-1]] if len(names) > _SHOWN else names
    return f"It is the chain {', '.join(shown)}."


def _short(name: str) -> str:
    return "generated softmax kernel" if is_generated(name) else name.removeprefix("aten::")


def _moved(facts: Facts, one: ByHand) -> str:
    if one.sizes is None:
        return " How many bytes of scores that moves, the trace does not show (record_shapes=True)."
    each = f" Its scores are {_shape(one.sizes)}"
    n_bytes = one.sizes.scores * element_bytes(one.dtype)
    if not n_bytes:
        return f"{each}."
    each += f" of {HALF.get(one.dtype, 'float32')}, {size(n_bytes)}"
    traffic = score_traffic(facts.tree, one) if on_gpu(facts) else None
    return f"{each}{'.' if traffic is None else _traffic(traffic)}"


def _shape(sizes: Sizes) -> str:
    return f"{count(sizes.batch)} x {count(sizes.queries)} x {count(sizes.keys)} elements"


def _traffic(traffic: Traffic) -> str:
    return (
        f", written to memory {plural(traffic.times_written, 'time')} ({size(traffic.written_bytes)}) and "
        f"read back {plural(traffic.times_read, 'time')} ({size(traffic.read_bytes)}) in each forward; a "
        "fused kernel writes none of it."
    )


def _fix(one: ByHand) -> str:
    arguments, aside = ["q, k, v"], ""
    if one.biased:
        arguments.append("attn_mask=mask")
    elif one.masked:
        arguments.append("is_causal=True")
        aside = " (another mask than the causal one as attn_mask=mask)"
    if one.dropped:
        arguments.append("dropout_p=p")
    return (
        f"F.scaled_dot_product_attention({', '.join(arguments)}) in place of attention by hand{aside}, with "
        "scale= where it is not 1/sqrt(head dimension) and enable_gqa=True in place of repeated heads. "
        "Hugging Face "
        'models take attn_implementation="sdpa", nn.MultiheadAttention need_weights=False.'
    )


def _untold(where: Placement, scope: ScopeFacts, rows: Int64) -> CannotTell:
    reason = (
        f"a softmax between matrix products ({time_us(where.per_call_us(scope, rows))} a call) may be "
        "attention by hand; without shapes it cannot be told from other uses"
    )
    return CannotTell(ID, scope.scope.name, reason, "record_shapes=True")
