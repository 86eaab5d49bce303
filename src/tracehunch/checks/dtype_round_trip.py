"""dtype-round-trip: a tensor cast to another type and back for nothing.

## What it means
A tensor was cast from one floating-point type to another and back (bfloat16 to float32 to bfloat16, say)
with nothing in between, or with a single op that computes the same in either type: elementwise ops and
softmax on 16-bit tensors work in float32 inside and round once at the end. The casts are paired by order,
type and number of elements.

A norm written by hand (mean of squares, reciprocal root, product) in float32 between two casts is another
matter: the casts are there for precision, and right. It is a note, which names the fused norm.

## Why it costs
Each cast reads and writes the whole tensor: 6 bytes of traffic an element, so 12 for the round trip, and two
launches. Autograd casts the gradient back and forth once more.

## How to confirm
Look at the two casts given as evidence. Record with `record_shapes=True` to see types and sizes, and with
`with_stack=True` to get the line of code. Drop the casts and compare the result.

## How to fix
Drop both casts. Values stay the same where the type in between is the wider one. If it is the narrower one
the casts round the values, which a program may want, though mostly it does not.

## When it is fine
Several ops in float32 between the casts are precision practice and no finding. Rounding on purpose, to see
what a narrower type does to a model, is what a cast to it and back is for. Casts to 8 bits and to integers
are quantisation and not counted. Casts inside other ops, as in `softmax(x, dtype=torch.float32)`, belong to
`hidden-copy`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from tracehunch.checks._activities import on_gpu
from tracehunch.checks._ancestry import called_op
from tracehunch.checks._casts import BITS
from tracehunch.checks._launch_time import Waited
from tracehunch.checks._round_trips import Kind, RoundTrip, replayed_round_trips, round_trips
from tracehunch.checks._scopes import Placement, by_call_us, durations_us, place, place_ops, total_us
from tracehunch.checks._weight import is_material, is_noticeable, on_average, severity_of_elapsed
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.units import join, plural, share, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "dtype-round-trip"
_TORCH: Final = {
    "fp64": "torch.float64",
    "fp32": "torch.float32",
    "fp16": "torch.float16",
    "bf16": "torch.bfloat16",
}


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Casts that another one undoes, by scope; then norms between such casts."""
    trips = round_trips(facts)
    where = place(facts) if on_gpu(facts) else place_ops(facts)
    plain = {
        row: trip for trip in trips if trip.kind is not Kind.NORM for row in (*trip.rows, *trip.backward)
    }
    for scope, rows in where.by_scope(np.array(sorted(plain), dtype=np.int64)):
        yield from _for_nothing(facts, where, scope, rows, plain)
    norms = {trip.out.row: trip for trip in trips if trip.kind is Kind.NORM}
    for scope, rows in where.by_scope(np.array(sorted(norms), dtype=np.int64)):
        yield from _norms(facts, where, scope, [norms[row] for row in rows.tolist()])
    for scope, rows in where.by_scope(replayed_round_trips(facts)):
        yield from _without_ops(facts, where, scope, rows)


def _for_nothing(
    facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64, trips: dict[int, RoundTrip]
) -> Iterator[Finding]:
    """Report round trips that change no value, or only round it."""
    spent = where.per_call_us(scope, rows)
    if not is_noticeable(facts, scope, spent):
        return
    tree, waited = facts.tree, Waited.of(facts, scope, rows)
    chosen = list({id(trip): trip for trip in (trips[row] for row in rows.tolist())}.values())
    forward = [trip for trip in chosen if trip.out.row in rows]
    sure = all(trip.sure for trip in chosen)
    plain = np.array([row for row in rows.tolist() if trips[row].sure or not trips[row].out.elements], int)
    certain = where.per_call_us(scope, plain) + Waited.of(facts, scope, plain).us
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity=severity_of_elapsed(facts, scope, plain, certain) if plain.size else "note",
        confidence="high" if sure else "medium",
        time_at_stake_us=spent + waited.us,
        summary=f"{_what(facts, scope, chosen, forward)}: {_amount(facts, scope, rows)}"
        f"{at_source(tree, int(rows[0]))}",
        cause=f"{_cause(chosen, sure=sure)} At stake is the time of the casts{waited}.",
        fix=_fix(chosen[0]),
        evidence=tree.trace.events(np.concatenate([rows, np.unique(called_op(tree, rows))])),
        subject=", ".join(sorted({_types(trip) for trip in chosen})),
        per_call=_per_call(scope, rows.size),
        idle=waited.pieces,
    )


def _what(facts: Facts, scope: ScopeFacts, trips: Sequence[RoundTrip], forward: Sequence[RoundTrip]) -> str:
    types = join(sorted({_types(trip) for trip in trips}))
    if not forward:
        return f"autograd repeats round trips of the forward ({types})"
    used_by = sorted({facts.tree.trace.name_of(op) for trip in forward for op in trip.used_by})
    between = f"at most {join(used_by)}" if used_by else "nothing"
    times = plural(_per_call(scope, len(forward)), "tensor")
    return f"{times} a call cast {types} with {between} in between"


def _types(trip: RoundTrip) -> str:
    """``bf16 -> fp32 -> bf16``; the first may not be known."""
    there = f"{trip.out.target} -> {trip.back.target}"
    return f"{trip.out.source} -> {there}" if trip.out.source else f"to {there}"


def _cause(trips: Sequence[RoundTrip], *, sure: bool) -> str:
    same = all(BITS[trip.out.target] > BITS[trip.back.target] for trip in trips)
    effect = (
        "The second cast gives back the values that the first was given, so neither changes anything."
        if same
        else "The first cast rounds the values, and the second cannot bring back what is lost."
    )
    if any(trip.used_by for trip in trips):
        effect += " The op in between computes in float32 inside and rounds once, whichever type it is given."
    paired = (
        "" if sure else " They are paired by order and size: whether other code uses the copy, look and see."
    )
    return f"{effect}{paired}"


def _fix(trip: RoundTrip) -> str:
    source, between = _TORCH[trip.back.target], _TORCH[trip.out.target]
    if BITS[trip.out.target] > BITS[trip.back.target]:
        return f"Drop both casts, to {between} and back: x.to({between}).to({source}) is x."
    return f"Drop both casts, to {between} and back, unless rounding to {between} is what you want."


def _norms(
    facts: Facts, where: Placement, scope: ScopeFacts, trips: Sequence[RoundTrip]
) -> Iterator[Finding]:
    """Report norms that are made of several kernels between a cast and the cast back."""
    tree = facts.tree
    rows = np.array([row for trip in trips for row in trip.rows], dtype=np.int64)
    fused_us = float(durations_us(tree.trace, [trip.back.row for trip in trips]).sum())
    spent = where.per_call_us(scope, rows) - fused_us / len(scope.scope.calls)
    if not is_material(facts, scope, spent):
        return
    waited = Waited.of(
        facts, scope, np.array([row for trip in trips for row in trip.rows[1:]], dtype=np.int64)
    )
    trip, number = trips[0], _per_call(scope, len(trips))
    each = plural(round(rows.size / len(trips), 1), "kernel" if on_gpu(facts) else "op")
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="medium",
        time_at_stake_us=spent + waited.us,
        summary=f"{plural(number, 'norm')} a call written by hand in {trip.out.target} between casts, {each} "
        f"each: {_time(facts, scope, rows)}{at_source(tree, int(rows[0]))}",
        cause=f"The casts to {trip.out.target} and back to {trip.back.target} keep the norm precise and are "
        "right, but each step reads and writes the whole tensor. A fused norm computes in float32 inside and "
        "does so once. At stake is the time of all steps less that of the casts back, about what a fused "
        f"norm takes{waited}.",
        fix="torch.nn.RMSNorm (F.rms_norm), or torch.nn.LayerNorm if the mean is subtracted: one kernel in "
        "recent releases, with 16-bit input and output; or torch.compile the norm.",
        evidence=tree.trace.events(rows),
        subject="norm",
        per_call=number,
        idle=waited.pieces,
    )


def _without_ops(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[CannotTell]:
    """Say that casts back and forth in the replay of a CUDA graph have no ops that tell of their tensors."""
    if is_material(facts, scope, where.per_call_us(scope, rows)):
        reason = (
            f"{_amount(facts, scope, rows)} to another type and at once back ran outside any op: whether "
            "they are of one tensor is not in the trace"
        )
        yield CannotTell(ID, scope.scope.name, reason, "a run without the CUDA graph, record_shapes=True")


def _amount(facts: Facts, scope: ScopeFacts, rows: Int64) -> str:
    return f"{plural(_per_call(scope, rows.size), 'cast')}, {_time(facts, scope, rows)}"


def _time(facts: Facts, scope: ScopeFacts, rows: Int64) -> str:
    """Write ``28.23 us (14% of the scope's GPU time)``."""
    times = by_call_us(facts, scope, rows)
    of_all = share(float(times.sum()), total_us(facts, scope))
    what = "GPU" if on_gpu(facts) else "CPU"
    return f"{time_us(float(times.mean()))}{on_average(times)} ({of_all} of the scope's {what} time)"


def _per_call(scope: ScopeFacts, number: int) -> float:
    return round(number / len(scope.scope.calls), 1)
