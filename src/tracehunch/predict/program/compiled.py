"""What torch.compile makes of a program: regions, generated kernels, graph breaks, recompiles."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from tracehunch.predict.program.calls import Phase, Program

Mode = Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]

MODES: Final[tuple[Mode, ...]] = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@dataclass(frozen=True, slots=True)
class GeneratedKernel:
    """A kernel that Inductor writes for a region.

    `name` is as a trace shows it ("triton_poi_fused_gelu_mul_0"), `kind` Inductor's short word in it ("poi",
    "per", "red", "tem", "for" ...). `ops` are the operations merged in it, without "aten". `bytes` are those
    that it reads and writes, by Inductor's own estimate; None where it makes none. `elements` are those that
    it works on, `length` those of one reduction (1 for none). `on_gpu` is False for C++ code that runs on
    the host.
    """

    name: str
    kind: str = ""
    ops: tuple[str, ...] = ()
    bytes: int | None = None
    elements: int = 0
    length: int = 1
    on_gpu: bool = True


@dataclass(frozen=True, slots=True)
class Region:
    """One graph that Inductor compiled: what runs between graph breaks, forward or backward.

    `id` is torch's number of the compilation ("0/0": frame 0, first version), `graph` counts the graphs of
    the program from 0. `line` is the user's line of its first operation. `kernels` are the distinct generated
    kernels, by name. `replayed`: it runs as a CUDA graph, `not_replayed` says why it does not although asked
    for. `unknown` says why its kernels are not known, "" where they are.
    """

    id: str
    graph: int
    phase: Phase
    line: str = ""
    kernels: Mapping[str, GeneratedKernel] = field(default_factory=lambda: MappingProxyType({}))
    replayed: bool = False
    not_replayed: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a compiled region: which, and the calls of the program from `first` up to before `end`."""

    region: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Break:
    """A graph break: why, and the innermost line of the user's code."""

    reason: str
    line: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Recompile:
    """A function that was compiled again, in which call (from 1), and the guard that failed."""

    function: str
    call: int
    reason: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """One run of a compiled program, once all is compiled.

    In `program` the calls are those that launch: ops that run as ever outside regions, inside them library
    ops and, under the name of the kernel, generated kernels. `runs` are the regions that ran, in order,
    `regions` all that were compiled. `inductor` is the version of PyTorch whose compiler this is, `calls` how
    many calls were made, the last one being recorded. `recompiles` are those of all calls after the first;
    `steady` whether the last one compiled nothing. `notes` say what was decided without the GPU on which
    Inductor would have measured.
    """

    program: Program
    regions: tuple[Region, ...]
    runs: tuple[Run, ...]
    launches: Mapping[int, GeneratedKernel] = field(default_factory=lambda: MappingProxyType({}))
    """The generated kernel of each call that launches one, by the call's position in the program."""
    breaks: tuple[Break, ...] = ()
    recompiles: tuple[Recompile, ...] = ()
    inductor: str = ""
    mode: Mode = "default"
    calls: int = 3
    steady: bool = True
    frames: int | None = None
    """Compiled frames that the recorded call entered, those without a graph too; None where none was seen."""
    notes: tuple[str, ...] = ()
