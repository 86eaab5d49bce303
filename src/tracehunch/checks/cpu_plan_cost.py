"""cpu-plan-cost: the host builds an execution plan inside a library call.

## What it means
A call into cuDNN (attention, convolution; on AMD MIOpen) took milliseconds of host time that nothing
recorded inside it explains, in the first call of a shape, while calls of a shape seen before take some tens
of microseconds. That is the library choosing and building an execution plan, often compiling a kernel, for
the exact shape. Plans are kept in a cache, so the cost comes back with every new shape: with every new
sequence length.

## Why it costs
Tens of milliseconds a plan were measured on an H200, during which the thread launches nothing and the GPU
runs dry. With lengths that differ from batch to batch it is paid again and again.

## How to confirm
Look for a long bar of `aten::_cudnn_attention_forward` (or a convolution) with a gap before its launch, in
the first call of a shape. Record with `record_shapes=True` to see the shapes.

## How to fix
Use fewer shapes: pad lengths to a multiple of 128 or 256, or sort them into buckets, and run each once
before serving. Or use a backend without plans for inputs of varying length: pin
`SDPBackend.FLASH_ATTENTION`, or start the process with `TORCH_CUDNN_SDPA_DEPRIORITIZED=1`. For convolutions
of varying size leave `torch.backends.cudnn.benchmark` off.

## When it is fine
Once a shape, in warm-up. Where only one shape runs, a single slow first call is a note, not a warning.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._scopes import Placement, durations_us, place_ops
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import LAUNCH_CATS, UNKNOWN_NS, Cat, Int64, Trace
from tracehunch.tree import Tree
from tracehunch.tree.keys import Lookup
from tracehunch.tree.names import names_that
from tracehunch.units import count, plural, time_us
from tracehunch.verdict import Confidence, Finding

ID: Final = "cpu-plan-cost"
_LEAST_US: Final = 2_000.0
"""Shorter than any plan build that was seen (22 to 70 ms), longer than most interruptions by the system."""
_TIMES_TYPICAL: Final = 10
_WITH_PLANS: Final = ("cudnn", "miopen")
_SHOWN: Final = 3
"""Shapes that the text names."""


def check(facts: Facts) -> Iterable[Finding]:
    """Find library calls whose own host time is far above that of others, in the first call of a shape."""
    trace = facts.tree.trace
    calls = np.flatnonzero((trace.cat == Cat.CPU_OP) & names_that(trace, has_plans)[trace.name])
    if not calls.size:
        return
    own = _own_time_us(facts.tree, calls)
    if not (own >= _LEAST_US).any():
        return
    where = place_ops(facts)
    for name in np.unique(trace.name[calls]):
        same = np.flatnonzero(trace.name[calls] == name)
        in_time = same[np.argsort(trace.start_ns[calls[same]], kind="stable")]
        yield from _findings(facts, where, calls[in_time], own[in_time])


def has_plans(name: str) -> bool:
    """Whether an op calls a library that builds execution plans."""
    return name.startswith("aten::") and any(library in name for library in _WITH_PLANS)


@dataclass(frozen=True, slots=True)
class _Builds:
    """The calls of one op that built a plan, in one scope."""

    rows: Int64
    excess_us: NDArray[np.float64]  # above a typical call
    typical_us: float  # 0 where every call of the op built one
    shapes: list[str]  # of these calls
    all_calls: int  # of the op, in the whole trace
    all_shapes: int
    all_builds: int
    shapes_recorded: bool


def _findings(facts: Facts, where: Placement, calls: Int64, own: NDArray[np.float64]) -> Iterator[Finding]:
    """Report one op's calls, given in order of time."""
    quick = own[own < _LEAST_US]
    typical = float(np.median(quick)) if quick.size else 0.0
    slow = (own >= _LEAST_US) & (own >= _TIMES_TYPICAL * typical)
    if not slow.any():
        return
    shapes = _shapes(facts.tree, calls)
    first_of = {shape: index for index, shape in reversed(list(enumerate(shapes)))}
    first = np.array([first_of[shape] == index for index, shape in enumerate(shapes)])
    recorded = facts.tree.trace.header.recorded.shapes
    # a call of a shape seen before was slow for another reason; grids alone do not tell close lengths apart
    built = calls[slow if slow.sum() > 1 and not recorded else slow & first]
    built_at = np.flatnonzero(np.isin(calls, built))
    for scope, _, at in where.positions(calls[built_at]):
        mine = built_at[at]
        builds = _Builds(
            rows=calls[mine],
            excess_us=own[mine] - typical,
            typical_us=typical,
            shapes=[shapes[index] for index in mine],
            all_calls=calls.size,
            all_shapes=len(first_of),
            all_builds=built.size,
            shapes_recorded=recorded,
        )
        yield _finding(facts, scope, builds)


def _finding(facts: Facts, scope: ScopeFacts, builds: _Builds) -> Finding:
    tree = facts.tree
    name = tree.trace.name_of(int(builds.rows[0]))
    known = f", where calls of known shapes take {time_us(builds.typical_us)}" if builds.typical_us else ""
    recurring = builds.all_builds > 1 or builds.all_shapes > 1
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity="warning" if recurring else "note",
        confidence=_confidence(builds),
        time_at_stake_us=float(builds.excess_us.sum()) / len(scope.scope.calls),
        summary=f"{name} spent up to {time_us(float(builds.excess_us.max()))} of host time on its own in "
        f"{count(builds.rows.size)} of "
        f"{plural(builds.all_calls, 'call')}{known}{at_source(tree, int(builds.rows[0]))}",
        cause=f"{_why(builds)} At stake is the host time above that of a typical call, averaged over the "
        "calls of the scope.",
        fix="Pad sequence lengths to a few sizes, L = (L + 127) // 128 * 128, and run each size once in "
        "warm-up; or use a backend without plans: from torch.nn.attention import SDPBackend, sdpa_kernel; "
        "with sdpa_kernel(SDPBackend.FLASH_ATTENTION): ... (for the whole process, in the environment: "
        "TORCH_CUDNN_SDPA_DEPRIORITIZED=1).",
        evidence=tree.trace.events(builds.rows),
        subject=name,
        per_call=round(builds.rows.size / len(scope.scope.calls), 1),
    )


def _confidence(builds: _Builds) -> Confidence:
    """Several builds, and shapes that tell first calls from others, are what makes it sure."""
    return ("low", "medium", "high")[(builds.all_builds > 1) + builds.shapes_recorded]


def _why(builds: _Builds) -> str:
    if not builds.shapes_recorded:
        return (
            "Nothing recorded inside explains the time: it is what building an execution plan for a new "
            "shape looks like. Which shapes were new, record_shapes=True would show."
        )
    shown = f"{'; '.join(builds.shapes[:_SHOWN])}{'; ...' if len(builds.shapes) > _SHOWN else ''}"
    return (
        f"Nothing recorded inside explains the time, and it comes in the first call of a shape ({shown}): "
        f"the library builds an execution plan.{_others(builds)}"
    )


def _others(builds: _Builds) -> str:
    """Say what became of the shapes that are not in the finding's calls."""
    quick = builds.all_shapes - builds.all_builds
    if not quick:
        return ""
    return f" The first calls of {plural(quick, 'other shape')} were quick: those plans were there before."


def _own_time_us(tree: Tree, calls: Int64) -> NDArray[np.float64]:
    """Host time of each op less that of the ops, runtime calls and profiler work directly inside it."""
    trace = tree.trace
    is_call = np.zeros(len(trace) + 1, dtype=bool)  # one more, for NONE
    is_call[calls] = True
    inside = np.flatnonzero(is_call[tree.parent])
    inside = inside[np.isin(trace.cat[inside], (Cat.CPU_OP, *LAUNCH_CATS))]
    own = durations_us(trace, calls)
    np.subtract.at(own, np.searchsorted(calls, tree.parent[inside]), durations_us(trace, inside))
    for index in np.flatnonzero(own >= _LEAST_US):
        own[index] -= _profilers_own_us(tree, int(calls[index]))
    return own


def _profilers_own_us(tree: Tree, row: int) -> float:
    """Sum the profiler's own work (buffers, module loading) within a row, whatever thread it is shown on."""
    trace = tree.trace
    work = np.flatnonzero((trace.cat == Cat.OVERHEAD) & (trace.dur_ns != UNKNOWN_NS))
    begin = np.maximum(trace.start_ns[work], trace.start_ns[row])
    end = np.minimum(trace.end_ns()[work], trace.end_ns()[row])
    return float(np.maximum(end - begin, 0).sum()) / 1e3


def _shapes(tree: Tree, calls: Int64) -> list[str]:
    """Say what plans are built for: the inputs' shapes, else the kernels launched and their grids."""
    trace = tree.trace
    which, inputs = trace.inputs_of(calls)
    known = [_sizes(one.dims) if isinstance(one.dims, list) else None for one in inputs]
    found = [known[number] for number in which.tolist()]
    launched = Lookup.of(tree.op[trace.gpu.row]) if None in found else None
    return [
        _kernels(trace, launched.having([row])) if sizes is None and launched else str(sizes)
        for row, sizes in zip(calls.tolist(), found, strict=True)
    ]


def _sizes(dims: list[Any]) -> str:
    sizes = ["x".join(map(str, shape)) for shape in dims if isinstance(shape, list) and shape]
    return " ".join(dict.fromkeys(sizes))  # query, key and value are often alike


def _kernels(trace: Trace, at: Int64) -> str:
    return str([(int(trace.name[trace.gpu.row[i]]), trace.gpu.grid[i].tolist()) for i in at])
