"""sync-stall and pageable-copy: where the host waits for the GPU, and slow copies between both."""

from collections.abc import Iterator, Sequence
from typing import Final

from tracehunch.predict.program.findings._run import (
    Run,
    at_line,
    grouped,
    launches,
    line_of,
    modules_of,
    scope_of,
    times,
    us_of,
)
from tracehunch.predict.program.findings.fixes import SIZE, TO_DEVICE, TO_HOST, VALUE, Remedy
from tracehunch.predict.program.host import LAUNCH_US, OP_US
from tracehunch.predict.program.model import CallGuess, Foreseen, Severity
from tracehunch.predict.program.transfers import ASIDE, crosses, direction, is_pinned, moved_bytes
from tracehunch.units import bandwidth, plural, size, time_us

SYNC: Final = "sync-stall"
PAGEABLE: Final = "pageable-copy"
_VALUES: Final = ("aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero")
_SIZES: Final = (
    "aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::unique_consecutive", "aten::bincount",
    "aten::unique_dim", "aten::argwhere",
)  # fmt: skip
_BY_MASK: Final = (
    "aten::index",
    "aten::index_put_",
    "aten::index_put",
    "aten::_index_put_impl_",
    "aten::where",
)
_MASKS: Final = ("bool", "uint8")

_REFILL_US: Final = 40.0
"""What the GPU idles after a wait until the next launch arrives (30 to 100 us), where it had work queued."""
_EMPTY_US: Final = 6.5
"""What a wait costs where the queue is empty anyway: the copy and the way there and back."""
_WORD: Final = 0.001
_WARNING: Final = 0.03
_WARNING_OF_MANY: Final = 0.007
_MANY: Final = 4
_PINNED: Final = 24e9
"""Bytes a second that copies reach on PCIe 4 with 16 lanes."""


def stalls(run: Run) -> Iterator[Foreseen]:
    """Report waits by the op that makes them, in the kind of module where it does."""
    late = _behind(run.calls)
    waiting = [one for one in run.calls if waits(one)]
    for same in grouped(waiting, _name).values():
        yield from _stall(run, same, sum(id(one) in late for one in same))


def _name(one: CallGuess) -> str:
    return "aten::to" if one.call.op == "aten::_to_copy" else one.call.op


def _behind(calls: Sequence[CallGuess]) -> set[int]:
    """Return the calls that wait while the GPU is still at work on what was launched before.

    Both clocks are walked through the calls: the host's by stated costs, the GPU's by predicted times.
    """
    host = gpu = 0.0
    found = set()
    for one in calls:
        host += OP_US + LAUNCH_US * launches(one)
        if waits(one) and gpu > host:
            found.add(id(one))
        if one.activities.time is not None:
            gpu = max(gpu, host) + one.activities.time.mid_us
        if waits(one):
            host = max(host, gpu)
    return found


def waits(one: CallGuess) -> bool:
    """Whether the host waits for a call."""
    call = one.call
    if not launches(one):
        return False
    if crosses(call):
        return not call.options.get("non_blocking") and moved_bytes(call) <= ASIDE
    if all(place == "cpu" for place in call.devices):
        return False
    if call.op in _VALUES or call.op in _SIZES:
        return True
    masks = call.tensors[1:] if call.op != "aten::where" else call.tensors[:1]
    by_mask = call.op in _BY_MASK and any(given.dtype in _MASKS for given in masks)
    return by_mask and (call.op != "aten::where" or len(call.tensors) == 1)


def _stall(run: Run, same: Sequence[CallGuess], late: int) -> Iterator[Foreseen]:
    stake = _REFILL_US * late + _EMPTY_US * (len(same) - late)
    advice = _advice(same[0])
    name = _name(same[0])
    queue = (
        f"with work queued, the GPU idles after it until the next launch arrives ({times(late)} of "
        f"{len(same)}, about {time_us(_REFILL_US)} each)"
        if late
        else "the GPU is expected to have nothing queued there, as it waits for launches anyway, so that a "
        f"wait costs little more than itself (about {time_us(_EMPTY_US)} each)"
    )
    little = "" if stake >= _WORD * run.elapsed_us else ". In a run of this length that is next to nothing"
    yield Foreseen(
        id=SYNC,
        scope=scope_of(same),
        severity=_severity(run, stake, len(same)),
        confidence="high",
        time_at_stake_us=stake,
        summary=f"{name} makes the host wait for the GPU {times(len(same))}{at_line(same)}",
        cause=f"{name} {advice.cause}. At stake is a rule of thumb: {queue}{little}.",
        fix=advice.fix,
        modules=modules_of(same),
        line=line_of(same),
        subject=name,
        count=len(same),
    )


def _severity(run: Run, stake: float, number: int) -> Severity:
    """Say how bad waits are; one that costs nothing is a note, since it may where the GPU has more to do."""
    part = stake / run.elapsed_us if run.elapsed_us else 0.0
    return "warning" if part >= (_WARNING_OF_MANY if number >= _MANY else _WARNING) else "note"


def _advice(one: CallGuess) -> Remedy:
    if one.call.op in _VALUES:
        return VALUE
    if crosses(one.call):
        return TO_DEVICE if direction(one.call) == "htod" else TO_HOST
    return SIZE


def slow_copies(run: Run) -> Iterator[Foreseen]:
    """Report large copies from or to host memory that is not pinned."""
    found = [one for one in run.calls if crosses(one.call) and moved_bytes(one.call) > ASIDE]
    large = [one for one in found if not is_pinned(one.call)]
    for same in grouped(large, lambda one: direction(one.call)).values():
        yield from _slow(run, same)


def _slow(run: Run, same: Sequence[CallGuess]) -> Iterator[Foreseen]:
    spent, moved = us_of(same), sum(moved_bytes(one.call) for one in same)
    stake = max(spent - moved / _PINNED * 1e6, 0.0)
    part = stake / run.elapsed_us if run.elapsed_us else 0.0
    if not stake:
        return
    there = direction(same[0].call) == "htod"
    way = "from pageable memory to the GPU" if there else "from the GPU to pageable memory"
    rate = f" ({bandwidth(moved / spent * 1e6)})" if spent else ""
    yield Foreseen(
        id=PAGEABLE,
        scope=scope_of(same),
        severity="warning" if part >= _WARNING else "note",
        confidence="medium",
        time_at_stake_us=stake,
        summary=f"{plural(len(same), 'copy', 'copies')} {way}, {size(moved)} in about {time_us(spent)}{rate}"
        f"{at_line(same)}",
        cause="The driver copies pageable memory piece by piece through a buffer of its own, with the "
        "host's help, "
        f"and the host waits. At stake is the time above what they take at {bandwidth(_PINNED)}, which "
        "PCIe 4 with "
        "16 lanes allows. Memory that is pinned already is no matter of this finding.",
        fix=_TO_GPU if there else _TO_HOST,
        modules=modules_of(same),
        line=line_of(same),
        subject=same[0].call.op,
        count=len(same),
        small=part < _WORD,
    )


_TO_GPU: Final = (
    "Let the loader pin, DataLoader(..., pin_memory=True), or fill one pinned buffer again and again; then "
    "x.to(device, non_blocking=True)."
)
_TO_HOST: Final = (
    "Make a pinned buffer once, out = torch.empty(shape, dtype=dtype, pin_memory=True), and in each step "
    "out.copy_(x, non_blocking=True); wait for an event before reading it."
)
