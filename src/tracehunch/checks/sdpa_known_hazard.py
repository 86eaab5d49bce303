"""sdpa-known-hazard: an attention call of a kind that is known to go wrong, or slow.

## What it means
Some calls of `scaled_dot_product_attention` do what their author hardly meant: with `is_causal=True` and a
single query only the first key is seen. Some met a defect of one PyTorch or cuDNN version: a gradient of NaN
in cuDNN's backward, for a mask and certain lengths. Some are slow for no need: a mask tensor that holds the
causal triangle, one head of keys and values expanded to all. The finding says which of them the trace shows,
with a report of it.

## Why it costs
Wrong results and NaN cost a training run. A mask tensor is read in full, doubles the work of a causal kernel,
and keeps flash attention away. Math in place of a fused kernel keeps the scores of every head in memory.

## How to confirm
`tracehunch guess --why TRACE` lists each attention call with its shapes, strides and flags, the backend that
ran and why the others did not. Compare the result with that of
`torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`, in float64 where numbers matter.

## How to fix
As the finding says, each in its own way. Defects of a version go away with another one, or with another
backend: `torch.backends.cuda.enable_cudnn_sdp(False)`.

## When it is fine
A mask that is square and one for all batches need not be causal (a window, a document mask): then it is
needed. `is_causal` with more keys than queries is right for the prefill of a longer static cache. Where the
trace does not say which PyTorch made it, what only some versions do is a note: give `--torch` to
`tracehunch guess --why`, or write the version into the trace, `prof.add_metadata_json("torch_version",
json.dumps(torch.__version__))`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.checks._scopes import place_ops
from tracehunch.checks._sdpa_lengths import Varying, lengths_under_cudnn, varying_lengths
from tracehunch.checks._sdpa_savings import Saving, saving_of
from tracehunch.checks._weight import is_noticeable
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.predict.traced import (
    SDPA,
    UNRECORDED,
    Explained,
    Group,
    TracedHazard,
    explain,
    traced_hazards,
    triangles,
)
from tracehunch.predict.traced.words import call_text
from tracehunch.trace.model import Int64
from tracehunch.tree.names import names_that
from tracehunch.units import plural, printable, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "sdpa-known-hazard"
_PLANS: Final = "cudnn-plan-per-shape"
_REPORT_OF_PLANS: Final = "https://github.com/pytorch/pytorch/pull/155958"


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Report the known hazards of SDPA calls by scope; what could not be held against them is said."""
    explained = explain(facts.tree)
    if not explained.groups:
        return
    yield from _untold(explained)
    known = _by_hazard(facts, explained)
    length = lengths_under_cudnn(explained)
    if not known and not length:
        return
    where = place_ops(facts)
    for seen in known:
        rows = np.array([call.row for one in seen for call in one.group.calls], dtype=np.int64)
        for scope, inside in where.by_scope(rows):
            calls = _calls_of(scope, inside, seen)
            if _is_worth_a_word(facts, calls):
                yield _finding(facts, calls)
    for varying in varying_lengths(facts, length, where):
        yield _varying(facts, varying)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One hazard of one group of calls, and what they would save without it."""

    group: Group
    hazard: TracedHazard
    saving: Saving | None


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of one scope that have one hazard; `worst` are those that take longest."""

    scope: ScopeFacts
    rows: Int64
    gpu_rows: tuple[int, ...]
    worst: _Seen
    n_groups: int
    spent_us: float  # per call of the scope
    saved_us: float


def _by_hazard(facts: Facts, explained: Explained) -> list[list[_Seen]]:
    made = triangles(facts.tree)
    has_backward = bool(names_that(facts.tree.trace, _is_backward).any())
    found: dict[str, list[_Seen]] = {}
    for group in explained.groups:
        for hazard in traced_hazards(group, made, has_backward=has_backward):
            seen = _Seen(group, hazard, saving_of(group, hazard))
            found.setdefault(hazard.hazard.id, []).append(seen)
    return list(found.values())


def _is_backward(name: str) -> bool:
    return name.startswith("aten::_scaled_dot_product_") and name.endswith("_attention_backward")


def _untold(explained: Explained) -> Iterator[CannotTell]:
    """Say what was missing, once for each reason."""
    without = [group for group in explained.groups if not group.cases]
    for reason in dict.fromkeys(group.unknown for group in without):
        alike = [group for group in without if group.unknown == reason]
        n_calls = sum(len(group.calls) for group in alike)
        text = f"{plural(n_calls, 'SDPA call')} cannot be held against what is known: {printable(reason)}"
        yield CannotTell(ID, "whole", text, "record_shapes=True" if reason == UNRECORDED else "")


def _calls_of(scope: ScopeFacts, rows: Int64, seen: list[_Seen]) -> _Calls:
    """Add up the calls in one scope."""
    inside = set(rows.tolist())
    time: dict[int, float] = {}
    gpu_rows: list[int] = []
    saved = 0.0
    for at, one in enumerate(seen):
        mine = [call for call in one.group.calls if call.row in inside]
        if mine:
            time[at] = sum(call.cpu_us if call.gpu_us is None else call.gpu_us for call in mine)
            gpu_rows += [row for call in mine for row in call.gpu_rows]
            saved += 0.0 if one.saving is None else one.saving.per_call_us * len(mine)
    n_calls = len(scope.scope.calls)
    worst = seen[max(time, key=lambda at: time[at])]
    spent = sum(time.values()) / n_calls
    return _Calls(scope, rows, tuple(gpu_rows), worst, len(time), spent, saved / n_calls)


def _is_worth_a_word(facts: Facts, calls: _Calls) -> bool:
    """Wrong results always are; what costs time or memory, where it can be noticed."""
    hazard = calls.worst.hazard
    if hazard.hazard.kind in ("correctness", "error"):
        return True
    if hazard.confidence == "low":
        return calls.saved_us > 0 and is_noticeable(facts, calls.scope, calls.saved_us)
    return is_noticeable(facts, calls.scope, calls.spent_us)


def _finding(facts: Facts, calls: _Calls) -> Finding:
    """Report one hazard in one scope, in the words of the calls that take longest."""
    hazard = calls.worst.hazard
    n_rows, todo = calls.rows.size, hazard.hazard.todo
    return Finding(
        id=ID,
        scope=calls.scope.scope.name,
        severity=hazard.severity,
        confidence=hazard.confidence,
        time_at_stake_us=calls.saved_us,
        summary=f"{hazard.hazard.words}{at_source(facts.tree, int(calls.rows[0]))}",
        cause=_cause(calls),
        fix=f"{todo[:1].upper()}{todo[1:]}.",
        evidence=facts.tree.trace.events([*calls.rows.tolist(), *calls.gpu_rows]),
        subject=f"{SDPA} {hazard.hazard.id}",
        per_call=round(n_rows / len(calls.scope.scope.calls), 1),
    )


def _cause(calls: _Calls) -> str:
    seen, setting = calls.worst, calls.worst.group.setting
    others = f" and {plural(calls.n_groups - 1, 'other kind')} of call" if calls.n_groups > 1 else ""
    hardware = printable(setting.hardware)
    parts = [f"{plural(calls.rows.size, 'call')}: {call_text(seen.hazard.case.call)}{others}, on {hardware}."]
    if seen.hazard.versions:
        parts.append(f"It is known {seen.hazard.versions}: the trace does not say which.")
    elif seen.hazard.hazard.of_cudnn and not setting.cudnn_recorded:
        parts.append("cuDNN is taken to be that of PyTorch's wheel: the trace does not say.")
    parts.append(f"Reported at {seen.hazard.hazard.links[0]}.")
    if calls.saved_us and seen.saving is not None:
        parts.append(
            f"At stake is what a call took ({time_us(seen.saving.measured_us)}) above the upper end of what "
            f"is expected of it without ({time_us(seen.saving.expected_us)})."
        )
    return " ".join(parts)


def _varying(facts: Facts, found: Varying) -> Finding:
    queries = [length for length, _ in found.lengths]
    span = f"L={min(queries)} to {max(queries)}" if min(queries) < max(queries) else f"L={queries[0]}"
    where = at_source(facts.tree, int(found.rows[0]))
    return Finding(
        id=ID,
        scope=found.scope.scope.name,
        severity="note",
        confidence="medium",
        time_at_stake_us=0.0,
        summary=f"cuDNN's attention met {len(found.lengths)} lengths ({span}), not the same in every call: "
        f"for each that is new it builds a plan on the host{where}",
        cause=f"No plan was built while this was recorded ({time_us(found.host_us)} a call on the host), so "
        "nothing is at stake here; tens of milliseconds were measured for a new one. Reported at "
        f"{_REPORT_OF_PLANS}.",
        fix="Pad lengths to a few sizes, or set TORCH_CUDNN_SDPA_DEPRIORITIZED=1 in the environment.",
        evidence=facts.tree.trace.events(found.rows),
        subject=f"{SDPA} {_PLANS}",
        per_call=round(found.rows.size / len(found.scope.scope.calls), 1),
    )
