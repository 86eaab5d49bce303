"""allocation-churn: memory is allocated from the driver, and freed, in every step.

## What it means
`cudaMalloc`, `cudaFree`, `cudaHostAlloc` or their like were called again and again in steady state. PyTorch
keeps what it has allocated in a cache, so that after the first steps no such call should be left. They come
back with `torch.cuda.empty_cache()` in the loop, with memory so full that the cache is given up to make room
(an allocation is tried again after freeing), with sizes that keep growing or never fit what is cached, and
with `pin_memory()` of new buffers.

## Why it costs
`cudaMalloc` takes 0.1 to 1 ms, pinning host memory up to a millisecond per megabyte, and `cudaFree` waits
until the GPU has finished all its work, so the queue runs dry each time.

## How to confirm
Look for the calls in the timeline, with the GPU idle after them. If
`torch.cuda.memory_stats()["num_alloc_retries"]` is above 0, memory is too full. Record with `with_stack=True`
to get the line of code.

## How to fix
Take `torch.cuda.empty_cache()` out of the loop. Allocate large buffers once and reuse them. If memory is too
full: a smaller batch, activation checkpointing, or the environment variable
`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`. If lengths vary: pad to a few sizes, and run the largest
first.

## When it is fine
In the first steps, until the cache has what the program needs. A trace of a single step cannot tell warm-up
from steady state unless memory is both allocated and freed in it several times.

At stake is the idle time of the GPU that the calls lead to, at most the time inside them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._ancestry import called_op
from tracehunch.checks._blocked import Blame, part_of_trace, typical_us
from tracehunch.checks._idle import IdleCause
from tracehunch.checks._scopes import by_call_us, durations_us, place_rows, sums_by_call
from tracehunch.checks._weight import on_average
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import LAUNCH_CATS, Int64
from tracehunch.tree import NONE, Api
from tracehunch.tree.names import names_that
from tracehunch.units import count, join, time_us
from tracehunch.verdict import CannotTell, Finding, Severity

ID: Final = "allocation-churn"
_WARNING: Final = 0.01
_NOTE: Final = 0.001
_ALLOCATES: Final = ("Alloc", "Register", "MemCreate")
_FREES: Final = ("Free", "Unregister", "MemRelease")
_HOST_MEMORY: Final = (
    "HostAlloc",
    "MallocHost",
    "HostMalloc",
    "HostRegister",
    "FreeHost",
    "HostFree",
    "HostUnregister",
)
_OFTEN: Final = 3
"""In a single call of a scope: so many allocations and as many frees are no warm-up."""
_STEADY: Final = 0.5
"""Part of the most frequent call's number that the later half of the calls has to keep up."""


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find allocations and frees that go on in the later calls of a scope."""
    rows = _calls(facts)
    if not rows.size or facts.tree.skewed:
        return
    for scope, mine in place_rows(facts, rows).by_scope(rows):
        churn = _Churn.of(facts, scope, mine)
        if len(scope.scope.calls) == 1 and not churn.steady:
            yield from _untold(churn)
        elif churn.steady:
            yield from _findings(churn)


def _calls(facts: Facts) -> Int64:
    """Find calls that allocate or free memory of the GPU, or pin memory of the host."""
    tree, trace = facts.tree, facts.tree.trace
    pinning = names_that(trace, lambda name: any(word in name for word in _HOST_MEMORY))
    rows = trace.rows(*LAUNCH_CATS)
    found: Int64 = rows[np.isin(tree.api[rows], (Api.ALLOC, Api.FREE)) | pinning[trace.name[rows]]]
    return found


@dataclass(frozen=True, slots=True)
class _Churn:
    """The calls in one scope; times and numbers are of each of its calls."""

    facts: Facts
    scope: ScopeFacts
    rows: Int64
    number: NDArray[np.float64]
    n_allocated: int
    n_freed: int
    spent_us: NDArray[np.float64]
    blame: Blame

    @classmethod
    def of(cls, facts: Facts, scope: ScopeFacts, rows: Int64) -> Self:
        trace = facts.tree.trace
        names = [trace.name_of(int(row)) for row in rows]
        freed = sum(any(word in name for word in _FREES) for name in names)
        return cls(
            facts,
            scope,
            rows,
            sums_by_call(facts, scope, rows, np.ones(rows.size)),
            len(names) - freed,
            freed,
            by_call_us(facts, scope, rows),
            Blame.of(facts, scope, rows, IdleCause.ALLOCATION),
        )

    @property
    def steady(self) -> bool:
        """Whether the calls go on after a warm-up."""
        if self.number.size == 1:
            return min(self.n_allocated, self.n_freed) >= _OFTEN
        later = self.number[(self.number.size + 1) // 2 :]
        return bool(later.min() > 0 and later.mean() >= _STEADY * self.number.max())


def _untold(churn: _Churn) -> Iterator[CannotTell]:
    spent = float(churn.spent_us.mean())
    if part_of_trace(churn.facts, churn.scope, spent) >= _WARNING:
        reason = f"{_calls_in_words(churn)} took {time_us(spent)} in the only call: it may be warm-up"
        yield CannotTell(ID, churn.scope.scope.name, reason, "three steps or more after some of warm-up")


def _findings(churn: _Churn) -> Iterator[Finding]:
    severity = _severity(churn)
    if severity is None:
        return
    tree = churn.facts.tree
    ops = called_op(tree, churn.rows)
    longest = int(churn.rows[np.argmax(durations_us(tree.trace, churn.rows))])
    yield Finding(
        id=ID,
        scope=churn.scope.scope.name,
        severity=severity,
        confidence="high" if churn.number.size >= _OFTEN else "medium",
        time_at_stake_us=float(churn.blame.by_call_us.mean()),
        summary=f"{_calls_in_words(churn)} a call, {time_us(float(churn.spent_us.mean()))} of host "
        f"time{on_average(churn.spent_us)}{at_source(tree, longest)}",
        cause=f"{_why(churn)} At stake is the idle time of the GPU that follows from these calls.",
        fix=_fix(churn),
        evidence=tree.trace.events(np.union1d(churn.rows, ops[ops != NONE])),
        subject=", ".join(_names(churn)),
        per_call=round(churn.rows.size / churn.number.size, 1),
        idle=tuple(churn.blame.pieces.tolist()),
    )


def _severity(churn: _Churn) -> Severity | None:
    """None where it is not worth a word."""
    typical = part_of_trace(churn.facts, churn.scope, typical_us(churn.blame.by_call_us))
    if typical >= _WARNING and churn.number.size > 1:
        return "warning"
    mean = part_of_trace(churn.facts, churn.scope, float(churn.blame.by_call_us.mean()))
    return "note" if mean >= _NOTE else None


def _names(churn: _Churn) -> list[str]:
    trace = churn.facts.tree.trace
    return sorted({trace.name_of(int(row)) for row in churn.rows})


def _calls_in_words(churn: _Churn) -> str:
    """Write ``1 cudaFree and 1 cudaMalloc``, the numbers per call of the scope."""
    trace = churn.facts.tree.trace
    names = [trace.name_of(int(row)) for row in churn.rows]
    calls = churn.number.size
    return join([f"{count(round(names.count(name) / calls, 1))} {name}" for name in _names(churn)])


def _pins(churn: _Churn) -> bool:
    """Whether all of it is memory of the host."""
    return all(any(word in name for word in _HOST_MEMORY) for name in _names(churn))


def _why(churn: _Churn) -> str:
    if _pins(churn):
        return "Pinning maps each page of host memory for the GPU, and it is done anew in every step."
    if not churn.n_freed:
        return "PyTorch's cache had nothing that fits and memory grew in every step."
    return (
        "PyTorch's cache gave memory back to the driver and had to ask for it again; freeing waits until the "
        "GPU has finished."
    )


def _fix(churn: _Churn) -> str:
    if _pins(churn):
        return "Pin a buffer once and fill it in each step; let DataLoader(pin_memory=True) pin batches."
    if not churn.n_freed:
        return (
            "Find what keeps tensors alive from step to step (losses without detach(), lists of outputs), or "
            "what grows; if lengths vary, pad to a few sizes and run the largest first."
        )
    return (
        "Take torch.cuda.empty_cache() out of the loop and keep large buffers; if memory is full "
        '(torch.cuda.memory_stats()["num_alloc_retries"] above 0), a smaller batch, activation checkpointing '
        "or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
    )
