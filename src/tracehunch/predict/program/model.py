"""What is guessed of a whole program: its op calls, added up by op, by module and for all of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from tracehunch.guess.model import Confidence
from tracehunch.predict.activities import Activities, TimeRange
from tracehunch.predict.environment import Environment
from tracehunch.predict.program.calls import OpCall, Program
from tracehunch.predict.sdpa.prediction import SdpaPrediction

if TYPE_CHECKING:
    from tracehunch.predict.program.compiled_guess import CompiledGuess

Severity = Literal["error", "warning", "note"]

WorkBound = Literal["compute", "memory"]
"""What limits some work on the GPU itself."""

RunBound = Literal["gpu", "launch", "either"]
"""What a run waits for: the GPU (the host is ahead), launches (the GPU waits for the host), or too close."""


@dataclass(frozen=True, slots=True)
class OpPart:
    """What a call launches under one op: the innermost one around the launch, to which a trace gives it."""

    op: str
    activities: Activities


@dataclass(frozen=True, slots=True)
class CallGuess:
    """One call and what it is expected to run, in order of launch.

    `parts` are its launches by the op that a trace shows them under, one after the other. `roofline_us` is
    the least time that the GPU's peaks allow, `bound` what sets it; None where that is not known.
    `sdpa` is the dispatcher's answer where the call is one of SDPA.
    """

    call: OpCall
    parts: tuple[OpPart, ...]
    activities: Activities
    roofline_us: float | None = None
    bound: WorkBound | None = None
    sdpa: SdpaPrediction | None = None

    @property
    def told(self) -> bool:
        """Whether kernels, copies and memsets are all known."""
        found = self.activities
        return found.kernels is not None and found.copies is not None and found.memsets is not None


@dataclass(frozen=True, slots=True)
class Amounts:
    """Sums over some calls.

    What cannot be told counts nothing: `untold` is how many calls that are, so that the rest is "at least".
    `untimed` is how many calls have no time. Times and the roofline are microseconds, FLOPs and bytes those
    of all calls together; `time` is None where no call has one.
    """

    calls: int = 0
    kernels: int = 0
    copies: int = 0
    memsets: int = 0
    time: TimeRange | None = None
    flops: int = 0
    bytes: int = 0
    roofline_us: float | None = None
    bound: WorkBound | None = None
    untold: int = 0
    untimed: int = 0

    @property
    def gpu_time_us(self) -> float | None:
        """The best single guess of the GPU time."""
        return None if self.time is None else self.time.mid_us

    @property
    def low_us(self) -> float | None:
        """The least GPU time to expect."""
        return None if self.time is None else self.time.low_us

    @property
    def high_us(self) -> float | None:
        """The most GPU time to expect."""
        return None if self.time is None else self.time.high_us


@dataclass(frozen=True, slots=True)
class OpRow:
    """All calls of one op in one module. `op` is as a trace attributes it, `called` what the program called.

    `lines` are the lines of the user's code that make the calls. `confidence` is the least of theirs.
    """

    op: str
    module: str
    amounts: Amounts
    called: tuple[str, ...] = ()
    module_type: str = ""
    lines: tuple[str, ...] = ()
    confidence: Confidence = "high"
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """A module with all that is inside it ("" is the whole program)."""

    module: str
    module_type: str
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class HostTime:
    """Host time in microseconds, and how it is counted.

    `time` is what the run takes on the host without a profiler, `profiled` with one. `launch_us` is the
    stated cost of one launch, `op_us` of one op, `module_us` of one module call; `source` says where they
    were measured.
    """

    time: TimeRange
    profiled: TimeRange
    launches: int
    ops: int
    modules: int
    launch_us: float
    op_us: float
    module_us: float
    source: str


class CountRange(NamedTuple):
    """The least and the most to expect of a count."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Totals:
    """The whole run. `at_least`: some calls could not be told, or nothing after an obstacle was recorded.

    `stopped` is the latter.
    `bound` is None where the GPU's time is not known. `spread` says how the range of `amounts.time` was made
    of the calls' ranges. `ranges` has the range of each count ("kernels", "copies", "memsets").
    """

    amounts: Amounts
    host: HostTime
    bound: RunBound | None
    at_least: bool
    spread: str
    stopped: bool = False
    ranges: Mapping[str, CountRange] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def cpu_time_us(self) -> float:
        """Host time without a profiler."""
        return self.host.time.mid_us


@dataclass(frozen=True, slots=True)
class Leader:
    """An op that will take much of the GPU's time; `share` of it (0 to 1)."""

    op: str
    gpu_time_us: float
    share: float
    clear: bool
    """Whether it clearly takes more than the one after it."""


@dataclass(frozen=True, slots=True)
class Hazard:
    """Something known to go wrong with such a call."""

    id: str
    words: str


@dataclass(frozen=True, slots=True)
class SdpaGuess:
    """SDPA calls that are alike: where they are and what runs them.

    `backend` is "flash" and the like, "error" where the call raises, None where it cannot be told.
    `reasons` say why every other backend that was asked before refuses, in full sentences; `call` describes
    the inputs in a phrase.
    """

    modules: tuple[str, ...]
    line: str
    calls: int
    backend: str | None
    reasons: tuple[str, ...]
    hazards: tuple[Hazard, ...]
    call: str
    phase: str = "forward"
    gpu_time_us: float | None = None


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A finding that can be known beforehand; ids and words are those of the checks of a trace.

    `modules` are where, the shortest form that names them all first in `scope`. `line` is the source line.
    `time_at_stake_us` is what the fix would save in the whole run, estimated as `cause` says. `subject` is
    the op that it is about, `count` how often it happens.
    """

    id: str
    scope: str
    severity: Severity
    confidence: Confidence
    time_at_stake_us: float
    summary: str
    cause: str
    fix: str
    modules: tuple[str, ...] = ()
    line: str = ""
    subject: str = ""
    count: int = 1
    small: bool = False
    """Whether so little is at stake that reports name it in a line with others."""


@dataclass(frozen=True, slots=True)
class Untold:
    """What cannot be told, and what it leaves open.

    `op` is "" for an obstacle of the recording. `open` are the totals that are "at least" for it ("kernels",
    "copies", "memsets", "gpu_time", "all that follows").
    """

    op: str
    count: int
    reason: str
    open: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    line: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class ProgramGuess:
    """All that is expected of a program's GPU trace."""

    program: Program
    env: Environment
    calls: tuple[CallGuess, ...]
    ops: tuple[OpRow, ...]
    """By op and module, the most GPU time first."""
    by_op: tuple[OpRow, ...]
    """By op over all modules (`module` ""), the most GPU time first."""
    modules: tuple[ModuleRow, ...]
    totals: Totals
    leaders: tuple[Leader, ...]
    sdpa: tuple[SdpaGuess, ...] = ()
    findings: tuple[Foreseen, ...] = ()
    smaller: tuple[Foreseen, ...] = ()
    """Findings with too little at stake for a place among them."""
    cannot_tell: tuple[Untold, ...] = ()
    compiled: "CompiledGuess | None" = None
    """What torch.compile makes of it, where it is compiled."""
