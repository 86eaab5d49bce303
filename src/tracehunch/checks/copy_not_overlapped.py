"""copy-not-overlapped: the GPU's compute waits for copies that could run beside it.

## What it means
Copies between pinned host memory and the GPU ran on the stream that the kernels run on, one after the other,
and nothing else ran meanwhile. The copy engines work beside the multiprocessors, but what shares a stream
runs in order: `non_blocking=True` lets the host go on, not the GPU.

## Why it costs
The multiprocessors idle for the length of the copy. 32 MiB take 0.65 ms over PCIe 5 and 1.3 ms over PCIe 4,
in which an H200 could have multiplied matrices of 8192 by 8192.

## How to confirm
In the timeline `Memcpy HtoD (Pinned -> Device)` is on the stream of the kernels, and all other rows of the
device are empty above and below it.

## How to fix
Copy the next batch on a stream of its own while the current one is worked on, and let the compute stream wait
for it just before use:

    with torch.cuda.stream(copy_stream):
        following = next(batches).to("cuda", non_blocking=True)
    ...  # the current batch
    torch.cuda.current_stream().wait_stream(copy_stream)
    following.record_stream(torch.cuda.current_stream())

Results that go to the host can leave on another stream in the same way, while the next batch runs. Copying
less (uint8 images in place of float32 ones, cast on the GPU) helps as well.

## When it is fine
If the copies are short beside the work, or if nothing is there that could run meanwhile, as for a single
batch. If the GPU idles more than it works a copy costs next to nothing, and it is a note.

At stake is the shorter of the two: the time in which the copies ran alone, or the time of all other work in
the scope that could have run beside them; less the time in which the GPU waits for launches after them, since
it would wait so much longer without the copies. Copies of up to 64 KiB are not counted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from tracehunch.checks._ancestry import called_op
from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.checks._overlap import alone_ns, others_beside, stream_column, union_ns
from tracehunch.checks._pageable import HostCopies, host_copies
from tracehunch.checks._scopes import call_of, durations_us, gpu_rows, place
from tracehunch.checks._weight import is_material, is_noticeable
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Cat, Int64
from tracehunch.tree import NONE
from tracehunch.units import bandwidth, plural, share, size, time_us
from tracehunch.verdict import Finding, Severity

ID: Final = "copy-not-overlapped"
_MOSTLY_IDLE: Final = 0.5
_MOSTLY_ALONE: Final = 0.5


def check(facts: Facts) -> Iterable[Finding]:
    """Find pinned copies on a compute stream that nothing overlaps, by scope and direction."""
    copies = host_copies(facts)
    wanted = copies.of(copies.large & copies.pinned & _beside_kernels(facts, copies))
    if not wanted.rows.size:
        return
    where = place(facts)
    for scope, _, at in where.positions(wanted.rows, wanted.to_device):
        if is_noticeable(facts, scope, where.per_call_us(scope, wanted.rows[at])):
            yield from _findings(_Exposed.of(facts, scope, wanted.of(at)))


def _beside_kernels(facts: Facts, copies: HostCopies) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Tell copies on a stream that also runs kernels."""
    trace = facts.tree.trace
    stream = stream_column(trace)
    return np.isin(stream[copies.rows], stream[trace.rows(Cat.KERNEL)])


@dataclass(frozen=True, slots=True)
class _Exposed:
    """The copies of one direction in one scope; times are means over its calls."""

    facts: Facts
    scope: ScopeFacts
    copies: HostCopies
    alone_us: float
    others_us: float  # the scope's other GPU work
    busy_us: float
    waiting_us: float  # for launches, after the first copy

    @classmethod
    def of(cls, facts: Facts, scope: ScopeFacts, copies: HostCopies) -> Self:
        trace, calls = facts.tree.trace, scope.scope.calls
        owned = gpu_rows(facts, scope)
        rest = np.setdiff1d(owned, copies.rows)

        def mean_us(total_ns: float) -> float:
            return total_ns / 1e3 / len(calls)

        return cls(
            facts,
            scope,
            copies,
            mean_us(float(alone_ns(trace, copies.rows, others_beside(facts, copies.rows)).sum())),
            mean_us(float(union_ns(trace, rest, np.zeros(rest.size), 1)[0])),
            mean_us(float(union_ns(trace, owned, np.zeros(owned.size), 1)[0])),
            _waiting_us(facts, scope, copies.rows),
        )

    @property
    def stake_us(self) -> float:
        return max(min(self.alone_us, self.others_us) - self.waiting_us, 0.0)


def _waiting_us(facts: Facts, scope: ScopeFacts, copies: Int64) -> float:
    """Return how long the GPU waits for launches after the first copy of a call, in the mean call."""
    trace, idle = facts.tree.trace, idle_of(facts)
    pieces = idle.inside(scope, IdleCause.LAUNCH)
    copied = np.full(len(scope.scope.calls), np.iinfo(np.int64).max)
    np.minimum.at(copied, call_of(facts, scope, copies), trace.end_ns()[copies])
    after = idle.start_ns[pieces] >= copied[call_of(facts, scope, idle.host_row[pieces])]
    return float(idle.within_us(scope, pieces[after]).sum()) / len(scope.scope.calls)


def _findings(found: _Exposed) -> Iterator[Finding]:
    facts, scope, rows = found.facts, found.scope, found.copies.rows
    whole = float(durations_us(facts.tree.trace, rows).sum()) / len(scope.scope.calls)
    hidden = min(found.alone_us, found.others_us)
    if found.alone_us < _MOSTLY_ALONE * whole or not is_noticeable(facts, scope, hidden):
        return
    tree = facts.tree
    ops = called_op(tree, rows)
    longest = int(rows[np.argmax(durations_us(tree.trace, rows))])
    to_device = bool(found.copies.to_device.any())
    names = sorted({tree.trace.name_of(int(op)) for op in ops if op != NONE})
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity=_severity(found),
        confidence="medium",
        time_at_stake_us=found.stake_us,
        summary=f"{_amount(found)}{at_source(tree, longest)}",
        cause="The copies are on the stream of the kernels, which runs in order, so neither runs beside the "
        f"other. At stake is the shorter of the two, {time_us(found.alone_us)} of copies that run alone or "
        f"{time_us(found.others_us)} of other work{_waiting(found)}.",
        fix=_FIX[to_device],
        evidence=tree.trace.events(np.union1d(rows, ops[ops != NONE])),
        subject=", ".join(names),
        per_call=_per_call(found),
    )


def _waiting(found: _Exposed) -> str:
    if not found.waiting_us:
        return ": so much can be hidden"
    return f", less {time_us(found.waiting_us)} in which the GPU waits for launches after them anyway"


def _severity(found: _Exposed) -> Severity:
    idle = found.scope.value("gpu_idle")
    mostly_idle = isinstance(idle, float) and idle > _MOSTLY_IDLE
    material = is_material(found.facts, found.scope, found.stake_us)
    return "warning" if material and not mostly_idle else "note"


def _per_call(found: _Exposed) -> float:
    return round(found.copies.rows.size / len(found.scope.scope.calls), 1)


def _amount(found: _Exposed) -> str:
    """Write ``1 copy a call to the GPU that nothing overlaps, 32 MiB: 650.1 us (79% of ...)``."""
    way = "to the GPU" if found.copies.to_device.any() else "to the host"
    said = f"{plural(_per_call(found), 'pinned copy', 'pinned copies')} a call {way} ran alone on the GPU"
    n_bytes, lengths = found.copies.n_bytes, durations_us(found.facts.tree.trace, found.copies.rows)
    rate = ""
    if (n_bytes >= 0).all() and lengths.any():
        moved = float(n_bytes.sum())
        per_call = size(moved / len(found.scope.scope.calls))
        rate = f", {per_call} at {bandwidth(moved / float(lengths.sum()) * 1e6)}"
    of_all = share(found.alone_us, found.busy_us)
    return f"{said} for {time_us(found.alone_us)} ({of_all} of the scope's GPU time){rate}"


_FIX: Final = {
    True: "Send the next batch on a stream of its own while the current one is worked on: with "
    "torch.cuda.stream(copy_stream): x = x.to(device, non_blocking=True); before use "
    "torch.cuda.current_stream().wait_stream(copy_stream) and x.record_stream(torch.cuda.current_stream()).",
    False: "Fetch results on a stream of their own while the next batch runs: copy_stream.wait_stream("
    "torch.cuda.current_stream()), then with torch.cuda.stream(copy_stream): out.copy_(y, "
    "non_blocking=True) and y.record_stream(copy_stream).",
}
