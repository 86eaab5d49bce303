"""clock-jitter: the same kernels are much slower in some calls than in others.

## What it means
A kernel with the same name, grid and block, at the same place in each call (and with the same shapes, where
those were recorded), took more than 1.3 times its usual time in some calls. Nothing else of this program ran
beside it. GPU clocks follow load, power and temperature; another process on the GPU has the same effect.

## Why it costs
It does not cost, it misleads: a mean over few calls, a single call, or a comparison of two traces of a few
calls says more about the clock than about the code.

## How to confirm
Compare the kernel's durations over the calls. `nvidia-smi -q -d CLOCK,PERFORMANCE` shows clocks and what
holds them down, `nvidia-smi` other processes. If nearly all kernels of a call are slower by the same factor
it is the clock; if some are much slower and others not at all, another process took turns with them.

## How to fix
Read medians over many calls. For comparisons lock the clock (`nvidia-smi -lgc`), if you may, have the GPU to
yourself, and warm it up for some seconds.

## When it is fine
Always: it is a note, with nothing at stake. Kernels below 20 us vary by themselves and are not looked at;
neither are collectives, which wait for other ranks, nor kernels that run beside others. Times that rise from
call to call are taken for growing work.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import gpu_positions, launched
from tracehunch.checks._overlap import overlapped_ns
from tracehunch.checks._scopes import call_of, durations_us, place, total_by_call_us
from tracehunch.facts.model import Facts, KernelUse, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.tree.keys import packed
from tracehunch.units import elide, join, plural, printable, ratio, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "clock-jitter"
_CALLS: Final = 3
_LEAST_US: Final = 20.0
_TIMES_USUAL: Final = 1.3
_MATERIAL: Final = 0.05
"""Part of a call's usual GPU time that the kernels must have been slower by."""
_BESIDE: Final = 0.1
"""Part of a kernel that may overlap others: one that starts early does so by a microsecond or two."""
_NEARLY_ALL: Final = 0.8
_GROWTH: Final = 1.03
_SHOWN: Final = 2

Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Kernels of a scope that are the same in each of its calls: (calls, kernels) rows and times."""

    scope: ScopeFacts
    rows: Int64
    us: NDArray[np.float64]

    @property
    def usual_us(self) -> NDArray[np.float64]:
        """Median of each kernel over the calls; of two the shorter."""
        middle = np.median if self.us.shape[0] >= _CALLS else np.min
        return np.asarray(middle(self.us, axis=0), dtype=np.float64)

    def of(self, wanted: Bool) -> "_Repeated":
        """Return some of the kernels."""
        return _Repeated(self.scope, self.rows[:, wanted], self.us[:, wanted])


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find calls in which kernels were much slower than in the other calls of the scope."""
    rows = _candidates(facts)
    if not rows.size:
        return
    for scope, mine in place(facts).by_scope(rows):
        if len(scope.scope.calls) == 1:
            continue
        repeated = _repeated(facts, scope, mine)
        long = repeated.of(repeated.usual_us > _LEAST_US)
        if long.us.size:
            yield from _jitter(facts, long)


def _is_compute(use: KernelUse) -> bool:
    return use.kind == "kernel" and use.identity.algorithm != "collective"


def _candidates(facts: Facts) -> Int64:
    """Find the kernels whose name is one that ran for long at least once."""
    trace = facts.tree.trace
    rows = launched(facts, _is_compute)
    lengths, names = durations_us(trace, rows), trace.name[rows]
    longest = np.zeros(len(trace.names))
    np.maximum.at(longest, names, lengths)
    found: Int64 = rows[(lengths > 0) & (longest[names] > _LEAST_US)]
    return found


def _repeated(facts: Facts, scope: ScopeFacts, rows: Int64) -> _Repeated:
    """Match kernels over calls by name, grid, block and their number within the call."""
    trace, calls = facts.tree.trace, len(scope.scope.calls)
    call, kind = call_of(facts, scope, rows), _kinds(facts, rows)
    order = np.lexsort((trace.start_ns[rows], call, kind))
    rows, call, kind = rows[order], call[order], kind[order]
    first = np.flatnonzero((np.diff(kind, prepend=-1) != 0) | (np.diff(call, prepend=-1) != 0))
    number = np.diff(np.append(first, rows.size))  # of each kind in each call that has it
    kinds, at = np.unique(kind[first], return_index=True)
    same = np.diff(np.append(at, first.size)) == calls
    same &= np.minimum.reduceat(number, at) == np.maximum.reduceat(number, at)
    column = np.cumsum(np.where(same, number[at], 0)) - np.where(same, number[at], 0)  # of the first
    within = np.arange(rows.size) - np.repeat(first, number)
    of_kind = np.searchsorted(kinds, kind)
    kept = same[of_kind]
    matched = np.zeros((calls, int(number[at][same].sum())), dtype=np.int64)
    matched[call[kept], (column[of_kind] + within)[kept]] = rows[kept]
    return _Repeated(scope, matched, durations_us(trace, matched.reshape(-1)).reshape(matched.shape))


def _kinds(facts: Facts, rows: Int64) -> Int64:
    """Give kernels of one device, name, grid and block one number, ordered as those are."""
    at, trace = gpu_positions(facts, rows), facts.tree.trace
    table = trace.gpu
    return packed(table.device[at], trace.name[rows], *table.grid[at].T, *table.block[at].T)


def _jitter(facts: Facts, kernels: _Repeated) -> Iterator[Finding | CannotTell]:
    slow = _slow(facts, kernels)
    more = np.where(slow, kernels.us - kernels.usual_us, 0).sum(axis=1)
    bad = np.flatnonzero(more >= _MATERIAL * _usual_call_us(facts, kernels.scope))
    if bad.size:
        n_calls = kernels.us.shape[0]
        yield _finding(facts, kernels, slow[bad], bad) if n_calls >= _CALLS else _untold(kernels)


def _usual_call_us(facts: Facts, scope: ScopeFacts) -> float:
    return float(np.median(total_by_call_us(facts, scope)))


def _slow(facts: Facts, kernels: _Repeated) -> Bool:
    """Tell which kernels were much slower than usual in which call, with nothing beside them."""
    slow = kernels.us > _TIMES_USUAL * kernels.usual_us
    if kernels.us.shape[0] >= _CALLS:
        slow &= ~(np.diff(kernels.us, axis=0) > (_GROWTH - 1) * kernels.us[:-1]).all(axis=0)
    if not slow.any():
        return slow
    trace = facts.tree.trace
    beside = overlapped_ns(trace, kernels.rows.reshape(-1)).reshape(kernels.rows.shape) / 1e3
    slow &= beside <= _BESIDE * kernels.us
    some = np.flatnonzero(slow.any(axis=0))
    slow[:, some] &= _same_shapes(facts, kernels.rows[:, some])
    return slow


def _same_shapes(facts: Facts, rows: Int64) -> Bool:
    """Tell for kernels in each call whether their ops have the shapes that most calls have."""
    op = facts.tree.op[rows].astype(np.int64)
    shape = np.zeros(op.shape, dtype=np.int64)  # of rows without an op
    which, inputs = facts.tree.trace.inputs_of(op[op != NONE])
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(str(one.dims), len(numbers) + 1) for one in inputs]
    shape[op != NONE] = np.array(codes, dtype=np.int64)[which]
    usual = [Counter(column.tolist()).most_common(1)[0][0] for column in shape.T]
    same: Bool = shape == np.array(usual, dtype=np.int64)
    return same


def _untold(kernels: _Repeated) -> CannotTell:
    """Two calls that differ do not say which of them is usual."""
    first, second = (time_us(float(one)) for one in kernels.us.sum(axis=1))
    reason = f"the same kernels took {first} in one call and {second} in the other: which is usual?"
    return CannotTell(ID, kernels.scope.scope.name, reason, "schedule(wait=1, warmup=3, active=10)")


def _finding(facts: Facts, kernels: _Repeated, slow: Bool, bad: Int64) -> Finding:
    """``slow``: (bad calls, kernels)."""
    trace = facts.tree.trace
    more = np.where(slow, kernels.us[bad] - kernels.usual_us, 0)
    order = np.argsort(-more.sum(axis=0), kind="stable")[: int(slow.any(axis=0).sum())]
    names = list(dict.fromkeys(trace.name_of(int(kernels.rows[0, at])) for at in order))
    most = float((kernels.us[bad] / kernels.usual_us)[slow].max())
    calls = kernels.us.shape[0]
    return Finding(
        id=ID,
        scope=kernels.scope.scope.name,
        severity="note",
        confidence="high" if trace.header.recorded.shapes else "medium",
        time_at_stake_us=0.0,
        summary=f"{plural(order.size, 'kernel')} took up to {ratio(most)} the usual time in {bad.size} of "
        f"{plural(calls, 'call')}, {time_us(float(more.sum(axis=1).mean()))} more a call: "
        f"{join([elide(printable(name), 50) for name in names[:_SHOWN]])}",
        cause=f"{_cause(kernels, slow)} Read medians: the usual GPU time of a call is "
        f"{time_us(_usual_call_us(facts, kernels.scope))}.",
        fix="Compare medians over many calls; for a comparison have the GPU to yourself and lock its clock "
        "(nvidia-smi -lgc), if you may.",
        evidence=trace.events(kernels.rows[bad][slow]),
        subject=", ".join(sorted(names)),
        per_call=round(int(slow.sum()) / calls, 1),
    )


def _cause(kernels: _Repeated, slow: Bool) -> str:
    usual = kernels.usual_us
    if (usual * slow.any(axis=0)).sum() >= _NEARLY_ALL * usual.sum():
        return (
            "Nearly all kernels are slower there, at the same sizes: a lower clock (power, temperature, a "
            "GPU that had been idle), or another process on the GPU."
        )
    return (
        "Others kept their time, at the same sizes: another process took turns on the GPU, the clock changed "
        "during the call, or these kernels do more work for some values."
    )
