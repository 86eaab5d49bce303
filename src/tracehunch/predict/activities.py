"""What one call is expected to do on a GPU: kernels, copies, memsets, work and time."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Self

from tracehunch.guess.model import Confidence

COUNTED: Final = "kernels were counted with torch 2.11 on an H200"
"""Why a prediction for another version or GPU is less sure."""

_CERTAINTY: Final[tuple[Confidence, ...]] = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class KernelGuess:
    """One expected kernel.

    `hint` is a piece of its name that a trace should show, "" where none can be said; `library`, `algorithm`,
    `unit` and `dtype` are in the words of `tracehunch.kernels.Identity`; `op` is the PyTorch op that
    launches it.
    """

    hint: str
    library: str
    algorithm: str
    unit: str = "none"
    dtype: str | None = None
    op: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """GPU time in us that is expected of some launches, and the op that the program calls for them."""

    called: str
    us: float


@dataclass(frozen=True, slots=True)
class TimeRange:
    """GPU time in microseconds: the middle is the best single guess."""

    low_us: float
    mid_us: float
    high_us: float

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.low_us + other.low_us, self.mid_us + other.mid_us, self.high_us + other.high_us
        )

    @property
    def width(self) -> float:
        """High over low."""
        return self.high_us / self.low_us


@dataclass(frozen=True, slots=True)
class Activities:
    """What one call puts on the GPU, in order of launch; `a + b` is the one after the other.

    `kernels`, `copies` (one direction a copy: "dtod", "htod", "dtoh") and `memsets` are `None` where it
    cannot be told. `flops` counts matrix products (a multiply and an add are two) and one or more per element
    of other arithmetic; `bytes` is what must move between the GPU and its memory, each kernel for itself;
    `spent` tells `time` by the ops that were called.
    `raises` is the error that PyTorch ends the call with; what is listed runs before it. `reasons` say where
    the numbers come from and why something cannot be told.
    """

    kernels: tuple[KernelGuess, ...] | None = ()
    copies: tuple[str, ...] | None = ()
    memsets: int | None = 0
    flops: int = 0
    bytes: int = 0
    time: TimeRange | None = None
    spent: tuple[Spent, ...] = ()
    confidence: Confidence = "high"
    raises: str | None = None
    reasons: tuple[str, ...] = ()

    @property
    def kernel_count(self) -> int | None:
        """Number of kernels, `None` where it cannot be told."""
        return None if self.kernels is None else len(self.kernels)

    @property
    def copy_count(self) -> int | None:
        """Number of memcpys in any direction, `None` where it cannot be told."""
        return None if self.copies is None else len(self.copies)

    @property
    def empty(self) -> bool:
        """Whether nothing at all runs on the GPU."""
        return self.kernels == () and self.copies == () and self.memsets == 0

    def because(self, *reasons: str, confidence: Confidence | None = None) -> Self:
        """Return the same with more reasons, and no more confidence than given."""
        least = self.confidence if confidence is None else _least(self.confidence, confidence)
        return replace(self, reasons=_joined(self.reasons, reasons), confidence=least)

    def __add__(self, other: Self) -> "Activities":
        return total((self, other))


def total(parts: Iterable[Activities]) -> Activities:
    """Return all parts, one after the other, up to one that raises; nothing at all for no parts."""
    ran: list[Activities] = []
    for part in parts:
        ran.append(part)
        if part.raises is not None:
            break
    if len(ran) == 1:
        return ran[0]
    kernels = [one.kernels for one in ran if one.kernels is not None]
    copies = [one.copies for one in ran if one.copies is not None]
    memsets = [one.memsets for one in ran if one.memsets is not None]
    return Activities(
        kernels=tuple(chain.from_iterable(kernels)) if len(kernels) == len(ran) else None,
        copies=tuple(chain.from_iterable(copies)) if len(copies) == len(ran) else None,
        memsets=sum(memsets) if len(memsets) == len(ran) else None,
        flops=sum(one.flops for one in ran),
        bytes=sum(one.bytes for one in ran),
        time=_time_of(ran),
        spent=tuple(chain.from_iterable(one.spent for one in ran)),
        confidence=min((one.confidence for one in ran), key=_CERTAINTY.index, default="high"),
        raises=ran[-1].raises if ran else None,
        reasons=tuple(dict.fromkeys(chain.from_iterable(one.reasons for one in ran))),
    )


def cannot_tell(reason: str) -> Activities:
    """Return activities of which nothing can be said, and why."""
    return Activities(kernels=None, copies=None, memsets=None, confidence="low", reasons=(reason,))


def _time_of(parts: Iterable[Activities]) -> TimeRange | None:
    """Add times; what runs nothing takes none, what runs for an unknown time makes the sum unknown."""
    result: TimeRange | None = None
    for part in parts:
        if part.time is None:
            if not part.empty:
                return None
        else:
            result = part.time if result is None else result + part.time
    return result


def _joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _least(first: Confidence, second: Confidence) -> Confidence:
    return min(first, second, key=_CERTAINTY.index)
