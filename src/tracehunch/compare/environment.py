"""What two traces were recorded on and with, held against each other first: whether their times compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tracehunch.guess.context import context_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracehunch.trace.model import Environment, Trace

Status = Literal["same", "differs", "unknown before", "unknown after", "unknown"]

CLOCK_MARGIN: Final = 0.05
"""What a clock may differ by and still be the same: it moves with temperature and load."""

_VERSIONS: Final[tuple[tuple[str, str], ...]] = (
    ("driver", "driver"),
    ("cuda_driver", "CUDA of the driver"),
    ("cuda_runtime", "CUDA runtime"),
    ("cuda", "CUDA of torch"),
    ("hip_runtime", "HIP runtime"),
    ("hip_driver", "HIP driver"),
    ("hip", "ROCm of torch"),
    ("cudnn", "cuDNN"),
    ("torch", "torch"),
    ("triton", "Triton"),
    ("nccl", "NCCL"),
)
_MACHINE: Final[tuple[tuple[str, str], ...]] = (
    ("sms", "SMs"),
    ("memory_bytes", "GPU memory"),
    ("sm_clock_max_mhz", "highest SM clock"),
    ("power_limit_w", "power limit"),
    ("sm_clock_mhz", "SM clock"),
    ("cpu", "CPU"),
    ("threads", "CPU threads"),
)
_CLOCKS: Final = ("sm_clock_mhz",)

_FOR_GPU: Final = ("GPU", "driver", "CUDA", "cuDNN", "torch")
_FOR_CPU: Final = ("CPU", "torch")
"""What has to be known on both sides for times to compare; CUDA stands for all that say it."""

_STANDS_FOR: Final[Mapping[str, str]] = {
    "CUDA runtime": "CUDA",
    "CUDA of torch": "CUDA",
    "HIP runtime": "CUDA",
    "ROCm of torch": "CUDA",
}
"""What tells nearly the same as something that is asked for."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that both may say; ``decides``: times do not compare where it differs."""

    name: str
    group: Literal["machine", "versions", "flags", "variables"]
    before: str
    after: str
    status: Status
    decides: bool


@dataclass(frozen=True, slots=True)
class EnvironmentDiff:
    """All entries, and what of it matters."""

    entries: tuple[Entry, ...]
    on_gpu: tuple[bool, bool]
    """Whether before, and after, have GPU work."""

    @property
    def deciding(self) -> tuple[Entry, ...]:
        """What differs so that times do not compare."""
        return tuple(entry for entry in self.entries if entry.decides and entry.status == "differs")

    @property
    def settings(self) -> tuple[Entry, ...]:
        """What else differs: clocks, flags, variables, libraries."""
        return tuple(entry for entry in self.entries if not entry.decides and entry.status == "differs")

    @property
    def same(self) -> tuple[Entry, ...]:
        """What is known to agree."""
        return tuple(entry for entry in self.entries if entry.status == "same")

    @property
    def times_compare(self) -> bool:
        """Whether nothing is known to keep times from comparing."""
        return self.same_kind and not self.deciding

    @property
    def same_kind(self) -> bool:
        """Whether both have GPU work, or neither."""
        return self.on_gpu[0] == self.on_gpu[1]

    def unknown(self, *where: Status) -> tuple[str, ...]:
        """Names of what should be known for times to compare, and is not: on one side, or on both."""
        wanted = _FOR_GPU if self.on_gpu[1] else _FOR_CPU
        return tuple(name for name in wanted if self._told(name) in where)

    def _told(self, name: str) -> Status:
        """Who tells something, by whatever stands for it: CUDA's version, or on the other side HIP's."""
        alike = [
            one
            for one in self.entries
            if one.group in ("machine", "versions") and _STANDS_FOR.get(one.name, one.name) == name
        ]
        before, after = (any(getattr(one, side) for one in alike) for side in ("before", "after"))
        if before and after:
            return "same"
        return "unknown" if before == after else "unknown after" if before else "unknown before"


def compare_environments(before: Trace, after: Trace) -> EnvironmentDiff:
    """Hold what two traces say of machine and software against each other."""
    first, second = before.header.environment, after.header.environment
    entries = [
        *_gpus(before, after),
        *_entries("machine", _MACHINE, first, second),
        *_entries("versions", _VERSIONS, first, second),
        *_settings("flags", first, second),
        *_settings("variables", first, second),
    ]
    on_gpu = (bool(len(before.gpu.row)), bool(len(after.gpu.row)))
    return EnvironmentDiff(tuple(entries), on_gpu)


def _gpus(before: Trace, after: Trace) -> Iterator[Entry]:
    """Compare the devices that ran something."""
    first, second = (context_of(trace).get("device", "") for trace in (before, after))
    if len(before.gpu.row) or len(after.gpu.row):
        yield Entry("GPU", "machine", first, second, _status(first, second), decides=True)


def _entries(
    group: Literal["machine", "versions"],
    names: tuple[tuple[str, str], ...],
    before: Environment,
    after: Environment,
) -> Iterator[Entry]:
    first, second = getattr(before, group), getattr(after, group)
    for key, name in names:
        if key in first or key in second:
            texts = [str(side[key]) if key in side else "" for side in (first, second)]
            close = key in _CLOCKS and _close(first.get(key), second.get(key))
            status = "same" if close else _status(*texts)
            yield Entry(name, group, texts[0], texts[1], status, decides=_decides(key))


def _decides(key: str) -> bool:
    return key not in (*_CLOCKS, "sm_clock_max_mhz", "power_limit_w", "threads", "nccl", "triton")


def _close(first: object, second: object) -> bool:
    if not isinstance(first, int | float) or not isinstance(second, int | float):
        return False
    return abs(first - second) <= CLOCK_MARGIN * max(abs(first), abs(second))


def _settings(
    group: Literal["flags", "variables"], before: Environment, after: Environment
) -> Iterator[Entry]:
    """Compare settings where both sides recorded them; what only one has was not set in the other."""
    if not (before.flags and after.flags):
        return
    first, second = getattr(before, group), getattr(after, group)
    absent = "not set" if group == "variables" else ""
    for name in dict.fromkeys((*first, *second)):
        texts = first.get(name, absent), second.get(name, absent)
        yield Entry(name, group, *texts, _status(*texts), decides=False)


def _status(before: str, after: str) -> Status:
    if not before or not after:
        return "unknown" if before == after else "unknown before" if not before else "unknown after"
    return "same" if before == after else "differs"
