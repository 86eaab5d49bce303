"""pageable-copy: a copy between host and GPU from or to pageable memory.

## What it means
The host's side of a copy (`Memcpy HtoD (Pageable -> Device)` or the way back) was ordinary memory, which the
operating system may move. The GPU cannot read it directly, so the driver copies it piece by piece through a
buffer of its own, with the host's help. `non_blocking=True` changes nothing about that.

## Why it costs
The copy runs at 3 to 12 GB/s in place of the 12, 25 or 50 GB/s of PCIe 3, 4 or 5, and as long as it lasts
the host launches nothing. A copy to the host into memory that was just allocated is slower still, as the
operating system has to provide each page first.

## How to confirm
The name of the copy says `Pageable`, its `memory bandwidth (GB/s)` is low, and `cudaMemcpyAsync` lasts about
as long as the copy itself. Record with `with_stack=True` to get the line of code.

## How to fix
To the GPU: let the loader pin (`DataLoader(..., pin_memory=True)`), or keep one pinned buffer and fill it
again and again, then `x.to("cuda", non_blocking=True)`. `pin_memory()` in every step allocates and copies,
which costs more than it saves. To the host: copy into a pinned buffer made once with
`torch.empty(..., pin_memory=True)`, with `non_blocking=True`, and wait for an event before reading it.

## When it is fine
Once, when a model is loaded. Up to 64 KiB the driver copies the data aside and goes on: such copies are not
counted here, and if the host waits for them that is `sync-stall`.

At stake is the time of the copies above what pinned memory would take, at the rate of the pinned copies in
the same trace or else of the slowest bus that the GPU may be on, and the idle time of the GPU that follows
from holding the host up; together at most the time that the host was held up. Traces of AMD GPUs do not tell
pageable memory from pinned.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._ancestry import called_op
from tracehunch.checks._blocked import Blame, part_of_trace, typical_us
from tracehunch.checks._idle import IdleCause
from tracehunch.checks._pageable import HostCopies, held_up_by, host_copies
from tracehunch.checks._scopes import by_call_us, durations_us, place
from tracehunch.checks._weight import on_average
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.units import bandwidth, join, plural, size, time_us
from tracehunch.verdict import CannotTell, Finding, Severity

ID: Final = "pageable-copy"
_WARNING: Final = 0.01
_NOTE: Final = 0.001
_MEASURED_BYTES: Final = 1 << 20
"""A pinned copy of so many bytes shows the rate of the bus."""
_AMPERE: Final = 8
_PCIE_BYTES_PER_S: Final = {False: 12e9, True: 24e9}
"""What copies reach on PCIe 3 (before Ampere) and on PCIe 4, 16 lanes; measured on PCIe 5: 52e9."""


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find large copies from or to pageable memory, by scope and direction."""
    copies = host_copies(facts)
    large = copies.of(copies.large)
    yield from _untold(facts, large.of(~large.pageable & ~large.pinned))
    pageable = large.of(large.pageable)
    if not pageable.rows.size:
        return
    pinned = copies.of(copies.pinned)
    rates = [_pinned_rate(facts, pinned.of(pinned.to_device == way)) for way in (False, True)]
    for scope, to_device, at in place(facts).positions(pageable.rows, pageable.to_device):
        yield from _findings(_Slow.of(facts, scope, pageable.of(at), rates[to_device]))


def _untold(facts: Facts, copies: HostCopies) -> Iterator[CannotTell]:
    """Say so where much time goes into copies whose host memory the trace does not tell."""
    if not copies.rows.size:
        return
    for scope, rows in place(facts).by_scope(copies.rows):
        mean = float(by_call_us(facts, scope, rows).mean())
        if part_of_trace(facts, scope, mean) >= _WARNING:
            reason = f"{time_us(mean)} of copies a call, which do not say whether host memory was pinned"
            yield CannotTell(ID, scope.scope.name, reason)


@dataclass(frozen=True, slots=True)
class _Rate:
    bytes_per_s: float
    source: str
    measured: bool


def _pinned_rate(facts: Facts, pinned: HostCopies) -> _Rate:
    """Say what pinned memory would give, in one direction."""
    big = pinned.of(pinned.n_bytes >= _MEASURED_BYTES)
    seconds = durations_us(facts.tree.trace, big.rows) / 1e6
    if (seconds > 0).any():
        rate = float(np.median(big.n_bytes[seconds > 0] / seconds[seconds > 0]))
        return _Rate(rate, "as the pinned copies in this trace reach", measured=True)
    major = [device.compute_major for device in facts.tree.trace.header.devices]
    recent = bool(major) and all(number is not None and number >= _AMPERE for number in major)
    bus = f"which PCIe {4 if recent else 3} with 16 lanes allows"
    return _Rate(_PCIE_BYTES_PER_S[recent], bus, measured=False)


@dataclass(frozen=True, slots=True)
class _Slow:
    """The copies of one direction in one scope; times are of each call of the scope."""

    facts: Facts
    scope: ScopeFacts
    copies: HostCopies
    rate: _Rate
    copy_us: NDArray[np.float64]
    held_us: NDArray[np.float64]  # of the host
    stake_us: NDArray[np.float64]
    idle: Int64  # pieces of idle time

    @classmethod
    def of(cls, facts: Facts, scope: ScopeFacts, copies: HostCopies, rate: _Rate) -> Self:
        copying = by_call_us(facts, scope, copies.rows)
        calls = held_up_by(facts, copies.rows)
        held = by_call_us(facts, scope, calls)
        lengths = durations_us(facts.tree.trace, copies.rows)
        pinned = np.where(copies.n_bytes > 0, copies.n_bytes / rate.bytes_per_s * 1e6, lengths)
        excess = copying * max(1 - float(pinned.sum()) / float(lengths.sum()), 0) if lengths.any() else 0
        blame = Blame.of(facts, scope, calls, IdleCause.COPY, IdleCause.SYNC)
        stake = np.minimum(excess + blame.by_call_us, held)
        return cls(facts, scope, copies, rate, copying, held, stake, blame.pieces)


def _findings(slow: _Slow) -> Iterator[Finding]:
    severity = _severity(slow)
    if severity is None:
        return
    tree = slow.facts.tree
    ops = called_op(tree, slow.copies.rows)
    names = sorted({tree.trace.name_of(int(op)) for op in ops if op != NONE})
    longest = int(slow.copies.rows[np.argmax(durations_us(tree.trace, slow.copies.rows))])
    yield Finding(
        id=ID,
        scope=slow.scope.scope.name,
        severity=severity,
        confidence="high" if slow.rate.measured else "medium",
        time_at_stake_us=float(slow.stake_us.mean()),
        summary=f"{_amount(slow)}{_by(names)}{at_source(tree, longest)}",
        cause=_cause(slow),
        fix=_FIX[bool(slow.copies.to_device.any())],
        evidence=tree.trace.events(np.union1d(slow.copies.rows, ops[ops != NONE])),
        subject=", ".join(names),
        per_call=_per_call(slow),
        idle=tuple(slow.idle.tolist()),
    )


def _severity(slow: _Slow) -> Severity | None:
    """None where it is not worth a word."""
    typical = part_of_trace(slow.facts, slow.scope, typical_us(slow.stake_us))
    if typical >= _WARNING:
        return "warning"
    mean = part_of_trace(slow.facts, slow.scope, float(slow.stake_us.mean()))
    return "note" if mean >= _NOTE else None


def _per_call(slow: _Slow) -> float:
    return round(slow.copies.rows.size / len(slow.scope.scope.calls), 1)


def _amount(slow: _Slow) -> str:
    """Write ``1 copy a call from pageable memory to the GPU, 16 MiB in 1.539 ms (10.9 GB/s), ...``."""
    there = bool(slow.copies.to_device.any())
    way = "from pageable memory to the GPU" if there else "from the GPU to pageable memory"
    mean, n_bytes = float(slow.copy_us.mean()), slow.copies.n_bytes
    time = f"{time_us(mean)}{on_average(slow.copy_us)}"
    if mean and (n_bytes >= 0).all():
        moved = float(n_bytes.sum()) / len(slow.scope.scope.calls)
        time = f"{size(moved)} in {time} ({bandwidth(moved / mean * 1e6)})"
    held = time_us(float(slow.held_us.mean()))
    return f"{plural(_per_call(slow), 'copy', 'copies')} a call {way}, {time}, held the host up for {held}"


def _by(names: Iterable[str]) -> str:
    found = join(list(names))
    return f", by {found}" if found else ""


def _cause(slow: _Slow) -> str:
    rate = f"{bandwidth(slow.rate.bytes_per_s)}, {slow.rate.source}"
    return (
        "The driver copies pageable memory piece by piece through a buffer of its own, with the host's help. "
        f"At stake is the time of the copies above what they take at {rate}, and the GPU's idle time that "
        "follows from holding the host up."
    )


_FIX: Final = {
    True: "Let the loader pin, DataLoader(..., pin_memory=True), or fill one pinned buffer again and again; "
    "then x.to(device, non_blocking=True). Calling pin_memory() in each step only moves the cost.",
    False: "Make a pinned buffer once, out = torch.empty(shape, dtype=dtype, pin_memory=True), and in each "
    "step out.copy_(x, non_blocking=True); wait for an event (or synchronise once) before reading out.",
}
