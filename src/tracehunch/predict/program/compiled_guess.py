"""What a compiled program's GPU trace will show: regions, the kernels of each, and claims."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tracehunch.guess.model import Claim
from tracehunch.predict.environment import Environment
from tracehunch.predict.program.amounts import amounts
from tracehunch.predict.program.calls import OpCall
from tracehunch.predict.program.compiled import CompiledProgram, GeneratedKernel, Region
from tracehunch.predict.program.compiled_calls import guess_calls
from tracehunch.predict.program.findings import Compiled
from tracehunch.predict.program.guess import guess_of
from tracehunch.predict.program.model import Amounts, CallGuess, ProgramGuess, Untold

TESTED: Final = ((2, 11), (2, 13))
"""First and last version of PyTorch whose Inductor was tried."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A generated kernel and how often one run of its region launches it."""

    kernel: GeneratedKernel
    launches: int
    gpu_time_us: float | None


@dataclass(frozen=True, slots=True)
class RegionGuess:
    """A region: how often it runs, its generated kernels, library operations by name, the sums of one run."""

    region: Region
    runs: int
    kernels: tuple[KernelRow, ...]
    library: tuple[tuple[str, int], ...]
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class CompiledGuess:
    """What torch.compile makes of a program. `merged`: the operations of each kernel that holds several."""

    program: CompiledProgram
    regions: tuple[RegionGuess, ...]
    merged: tuple[tuple[str, ...], ...]

    @property
    def n_runs(self) -> int:
        """Regions that run in one call, each time counted."""
        return len(self.program.runs)


def guess_compiled(compiled: CompiledProgram, env: Environment) -> ProgramGuess:
    """Return what is expected of a compiled program; `compiled` of it says what torch.compile makes."""
    calls = guess_calls(compiled, env)
    whole = guess_of(compiled.program, env, tuple(one for _, one in calls), _as_compiled(compiled, calls))
    made = CompiledGuess(compiled, tuple(_regions(compiled, calls)), _merged(compiled))
    told = (*whole.cannot_tell, *_untold(compiled, env))
    return replace(whole, compiled=made, cannot_tell=told)


def claims(guess: CompiledGuess, scope: str) -> Iterator[Claim]:
    """Yield what a trace of one call can be held against."""
    program = guess.program
    why = f"Inductor of torch {program.inductor} compiled it without a GPU"

    def claim(key: str, expected: int) -> Claim:
        return Claim(key, "==", expected, scope, "expert", why, confidence="medium", unit="count")

    if program.frames is not None:
        yield claim("compiled", program.frames)
    if program.steady and not program.recompiles:
        yield claim("compiled.recompiles", 0)
    if not program.breaks:
        yield claim("compiled.graph_breaks", 0)


def _regions(compiled: CompiledProgram, calls: Sequence[tuple[int, CallGuess]]) -> Iterator[RegionGuess]:
    of_call = dict(calls)
    runs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for run in compiled.runs:
        runs[run.region].append((run.first, run.end))
    for number, spans in runs.items():
        first, end = spans[-1]
        inside = [(at, compiled.program.calls[at]) for at in range(first, end)]
        guessed = [of_call[at] for at, _ in inside if at in of_call]
        yield RegionGuess(
            compiled.regions[number], len(spans), _kernels(compiled, inside, of_call),
            _library(compiled, inside), amounts(guessed),
        )  # fmt: skip


def _kernels(
    compiled: CompiledProgram, inside: Sequence[tuple[int, OpCall]], of_call: dict[int, CallGuess]
) -> tuple[KernelRow, ...]:
    counted = Counter(call.op for at, call in inside if at in compiled.launches)
    kernels = {
        compiled.launches[at].name: (compiled.launches[at], at)
        for at, call in inside
        if at in compiled.launches
    }
    rows = []
    for name, (kernel, at) in kernels.items():
        guessed = of_call.get(at)
        time = None if guessed is None else guessed.activities.time
        rows.append(KernelRow(kernel, counted[name], None if time is None else time.mid_us))
    return tuple(rows)


def _library(compiled: CompiledProgram, inside: Sequence[tuple[int, OpCall]]) -> tuple[tuple[str, int], ...]:
    silent = {
        "aten::as_strided",
        "aten::empty_strided",
        "aten::detach",
        "aten::view",
        "aten::alias",
        "aten::t",
    }
    counted = Counter(call.op for at, call in inside if at not in compiled.launches and call.op not in silent)
    return tuple(counted.most_common())


def _merged(compiled: CompiledProgram) -> tuple[tuple[str, ...], ...]:
    found = (kernel.ops for kernel in compiled.launches.values() if len(kernel.ops) > 1)
    return tuple(dict.fromkeys(found))


def _as_compiled(compiled: CompiledProgram, calls: Sequence[tuple[int, CallGuess]]) -> Compiled:
    inside = {at for run in compiled.runs for at in range(run.first, run.end)}
    ran = {run.region for run in compiled.runs}
    return Compiled(
        frozenset(id(one) for at, one in calls if at in inside),
        {id(one): compiled.launches[at] for at, one in calls if at in compiled.launches},
        replayed=bool(ran) and all(compiled.regions[number].replayed for number in ran),
    )


def _untold(compiled: CompiledProgram, env: Environment) -> Iterator[Untold]:
    version = tuple(int(part) for part in compiled.inductor.split("+")[0].split(".")[:2])
    if version != env.torch:
        yield Untold(
            "", 1, f"the kernels are those of Inductor {version[0]}.{version[1]}, which is installed; torch "
            f"{env.torch_name} may merge others", (),
            remedy=f"install torch {env.torch_name} (a CPU build will do)",
        )  # fmt: skip
    for note in compiled.notes:
        yield Untold("", 1, note)
    stopped = any(one.stops for one in compiled.program.obstacles)
    if not (compiled.steady or stopped):
        yield Untold(
            "", 1, f"call {compiled.calls} compiled again: kernels may change from call to call", ("kernels",)
        )
