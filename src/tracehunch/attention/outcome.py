"""What became of each variant: guessed, run or read from a recording, looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracehunch.attention.expert import Expert
    from tracehunch.attention.variant import DeviceKind, Variant
    from tracehunch.attention.verify import Verification
    from tracehunch.attention.workload import Workload
    from tracehunch.facts.model import ScopeFacts
    from tracehunch.guess import Guess
    from tracehunch.predict.roofline import Calibration
    from tracehunch.verdict import Look

Status = Literal["ran", "recorded", "failed"]


@dataclass(frozen=True, slots=True)
class Device:
    """What a variant ran on.

    ``torch`` is the version, "" where there is none; ``cudnn`` as ``torch.backends.cudnn.version()`` gives it
    (91900), None where it is not known or plays no part.
    """

    kind: DeviceKind
    name: str
    torch: str = ""
    recorded: bool = False
    cudnn: int | None = None

    def __str__(self) -> str:
        torch = f", torch {self.torch}" if self.torch else ""
        return f"{self.name}{torch}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One variant: its guesses, and the look at its trace.

    ``guess`` is the textbook's, with the user's own claims; ``expert`` the expert's. ``misjudged``: the
    expert guess was that it runs, and PyTorch refused it, or that it raises, and it ran.

    ``status`` is ``ran`` (here), ``recorded`` (read from a recording) or ``failed`` (no look). ``reason``
    says why it failed, or why a recording stands in for it. ``trace`` is the file looked at, where it was
    kept.
    """

    variant: Variant
    status: Status
    device: Device
    workload: Workload
    guess: Guess
    look: Look | None = None
    reason: str = ""
    verification: Verification | None = None
    trace: Path | None = None
    expert: Expert | None = None
    misjudged: bool = False

    @property
    def scope(self) -> ScopeFacts | None:
        """The facts of one forward; None where there are none."""
        return None if self.look is None else self.look.facts.scope(self.variant.label)

    def us(self, key: str) -> float | None:
        """Give a time of one forward in microseconds; None where it cannot be known."""
        scope = self.scope
        value = None if scope is None else scope.value(key)
        return float(value) if isinstance(value, int | float) else None

    @property
    def time_us(self) -> float | None:
        """What one forward takes: GPU time on a GPU, host time inside its ops on a CPU."""
        return self.us(time_key(self.device.kind))

    @property
    def is_wrong(self) -> bool:
        """Whether it computed something else than attention."""
        return self.verification is not None and not self.verification.passed


@dataclass(frozen=True, slots=True)
class Series:
    """All outcomes, in the order of the series; ``skipped`` names what an interrupt left undone.

    ``calibration`` are the peaks measured on the device before, None where they were not.
    """

    outcomes: tuple[Outcome, ...]
    interrupted: bool = False
    skipped: tuple[str, ...] = ()
    calibration: Calibration | None = None


def looks(series: Series) -> Iterator[tuple[Outcome, Look]]:
    """Yield the outcomes that were looked at."""
    for outcome in series.outcomes:
        if outcome.look is not None:
            yield outcome, outcome.look


def time_key(kind: DeviceKind) -> str:
    """Name the fact that says what a forward takes on a kind of device."""
    return "gpu_time" if kind == "cuda" else "cpu_time"


def times_best(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Variant -> its time as a multiple of the fastest one's that did the same work on the same device."""
    best: dict[tuple[Device, Workload], float] = {}
    for outcome in outcomes:
        if outcome.time_us:
            key = (outcome.device, outcome.workload)
            best[key] = min(best.get(key, outcome.time_us), outcome.time_us)
    return {
        outcome.variant.name: outcome.time_us / best[outcome.device, outcome.workload]
        for outcome in outcomes
        if outcome.time_us
    }
