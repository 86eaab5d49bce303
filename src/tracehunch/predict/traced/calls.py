"""The calls of SDPA in a trace: what each was given, which backend ran, where, and how long it took."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tracehunch.facts.sdpa import backend_of_op
from tracehunch.predict.traced.given import Given
from tracehunch.predict.traced.gradients import Rows, linked_calls, needs_gradient
from tracehunch.predict.traced.recorded import CALLS, SDPA, RecordedCall
from tracehunch.trace.model import UNKNOWN_NS, Cat
from tracehunch.tree import NONE
from tracehunch.tree.names import names_that

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tracehunch.trace.model import Int64, Trace
    from tracehunch.tree import Tree

Origin = Literal["program", "compiled", "direct", "tracing"]
"""Who made a call: the program; a compiled graph, with the backend that was picked when it was compiled; what
calls a backend's op by itself (nested tensors, the classes of torch.nn.attention.bias, the program); or
torch.compile while it traced the program, which runs nothing."""

Place = Literal["gpu", "cpu", "mps"]

_TRACING: Final = re.compile(r".*\(dynamo_timed\)", re.DOTALL)
"""Annotations around what torch.compile does while it compiles, torch 2.6 and later."""
_COMPILED: Final = re.compile(r"Torch-Compiled Region.*|.*CompiledFxGraph.*|CompiledFunction.*", re.DOTALL)
"""What stands around the ops of a compiled graph."""

_ON_GPU: Final = ("efficient", "cudnn", "flash")
"""Backends whose ops, but those for CPUs by name, run on GPUs alone."""
_PRODUCTS: Final = frozenset(
    {"aten::bmm", "aten::mm", "aten::baddbmm", "aten::addmm", "aten::mv", "aten::dot"}
)
_PRODUCTS_OF_MATH: Final = 2
_FOR_CPU: Final = "_for_cpu"
_FOR_MPS: Final = "_for_mps"


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One call. `ran` is the backend whose op is inside it, None where there is none.

    `place` and `recorded` are None where the trace does not tell; `device` is the GPU's number, NONE where
    no activity tells. `gpu_rows` are the activities that the call itself launched and `gpu_us` the sum of
    their times, None where there are none; `cpu_us` is its time on the host.
    """

    row: int
    op: str
    origin: Origin
    ran: str | None
    place: Place | None
    device: int
    recorded: RecordedCall | None
    unread: str
    grad: bool | None
    finished: bool | None
    gpu_rows: tuple[int, ...]
    gpu_us: float | None
    cpu_us: float

    @property
    def is_sdpa(self) -> bool:
        """Whether it is SDPA's own op, not that of a backend."""
        return self.op == SDPA


def sdpa_calls(tree: Tree) -> tuple[TracedCall, ...]:
    """Find every forward call of SDPA, by the program or a compiled graph, in order of time."""
    trace = tree.trace
    is_call = (trace.cat == Cat.CPU_OP) & names_that(trace, CALLS.__contains__)[trace.name]
    candidates = np.flatnonzero(is_call)
    if not candidates.size:
        return ()
    outermost = _outermost(tree, candidates, is_call)
    calls = candidates[outermost == candidates]
    calls = calls[np.argsort(trace.start_ns[calls], kind="stable")]
    inside = _inside(tree, candidates, outermost)
    seen = _Seen(tree, is_call, Given(trace, candidates))
    tracing, compiled = (_within(tree, calls, around.fullmatch) for around in (_TRACING, _COMPILED))
    return tuple(
        seen.call(inside[row], _origin(trace.name_of(row), tracing=bool(traced), compiled=bool(made)))
        for row, traced, made in zip(calls.tolist(), tracing, compiled, strict=True)
    )


def _origin(name: str, *, tracing: bool, compiled: bool) -> Origin:
    if tracing:
        return "tracing"
    if name == SDPA:
        return "program"
    return "compiled" if compiled else "direct"


def _inside(tree: Tree, candidates: Int64, outermost: Int64) -> dict[int, Rows]:
    """Return the rows of each call: autocast makes SDPA call itself again, with what it cast."""
    trace = tree.trace
    found: dict[int, Rows] = {}
    order = np.argsort(trace.start_ns[candidates], kind="stable")
    for row, call in zip(candidates[order].tolist(), outermost[order].tolist(), strict=True):
        rows = found.setdefault(call, Rows(call, call, NONE))
        if trace.name_of(row) != SDPA:
            found[call] = rows if rows.backend != NONE else replace(rows, backend=row)
        elif rows.backend == NONE:
            found[call] = replace(rows, asked=row)
    return found


class _Seen:
    """What GPU activities and launches tell of the calls, and what their ops were given."""

    def __init__(self, tree: Tree, is_call: NDArray[np.bool_], given: Given) -> None:
        self.tree, self.given, trace = tree, given, tree.trace
        rows = trace.gpu.row.astype(np.int64)
        owner = _outermost(tree, rows, is_call)
        self.gpu_rows: dict[int, list[int]] = {}
        self.device: dict[int, int] = {}
        for at in np.flatnonzero(owner != NONE).tolist():
            call = int(owner[at])
            self.gpu_rows.setdefault(call, []).append(int(rows[at]))
            self.device.setdefault(call, int(trace.gpu.device[at]))
        self.launched = set(_outermost(tree, tree.launches, is_call).tolist()) - {NONE}
        self.linked = linked_calls(tree, lambda rows: _outermost(tree, rows, is_call))
        products = tree.ops[names_that(trace, _PRODUCTS.__contains__)[trace.name[tree.ops]]]
        self.products = Counter(_outermost(tree, products, is_call).tolist())
        self.no_gpu = not (rows.size or tree.launches.size or trace.header.devices)

    def call(self, rows: Rows, origin: Origin) -> TracedCall:
        """Put together what is known of one call."""
        trace, row = self.tree.trace, rows.call
        has_op = rows.backend != NONE
        args = self.given.args(rows.backend if has_op else rows.asked)
        grad = needs_gradient(self.tree, rows, args, self.linked)
        op = trace.name_of(rows.backend) if has_op else ""
        ran = backend_of_op(op)
        recorded = self.given.call(rows.asked, grad=grad)
        launched = tuple(self.gpu_rows.get(row, ()))
        return TracedCall(
            row=row,
            op=trace.name_of(row),
            origin=origin,
            ran=ran,
            place=self._place(row, ran, op),
            device=self.device.get(row, NONE),
            recorded=recorded,
            unread=self.given.unread(rows.asked) if recorded is None else "",
            grad=grad,
            finished=self._finished(row, ran),
            gpu_rows=launched,
            gpu_us=_sum_us(trace, launched) if launched else None,
            cpu_us=_sum_us(trace, (row,)),
        )

    def _finished(self, row: int, ran: str | None) -> bool | None:
        """Math has two products; a fused kernel is launched in one go."""
        if ran == "math":
            return self.products[row] >= _PRODUCTS_OF_MATH
        return True if row in self.gpu_rows else None

    def _place(self, row: int, ran: str | None, op: str) -> Place | None:
        if op.endswith(_FOR_CPU):
            return "cpu"
        if op.endswith(_FOR_MPS):
            return "mps"
        if row in self.launched or row in self.gpu_rows or ran in _ON_GPU:
            return "gpu"
        return "cpu" if self.no_gpu else None


def _sum_us(trace: Trace, rows: tuple[int, ...]) -> float:
    lengths = trace.dur_ns[list(rows)]
    return int(lengths[lengths != UNKNOWN_NS].sum()) / 1e3


def _outermost(tree: Tree, rows: Int64, wanted: NDArray[np.bool_]) -> Int64:
    """For each row the outermost wanted op around (or being) it; NONE where there is none."""
    found = np.full(rows.size, NONE, dtype=np.int64)
    current = tree.op[rows].astype(np.int64)
    while (alive := np.flatnonzero(current != NONE)).size:
        here = current[alive]
        hit = wanted[here]
        found[alive[hit]] = here[hit]
        current[alive] = tree.parent[here]
    return found


def _within(tree: Tree, rows: Int64, wanted: Callable[[str], object]) -> NDArray[np.bool_]:
    """For each row whether something around it has a name like that."""
    named = names_that(tree.trace, lambda name: bool(wanted(name)))
    found = np.zeros(rows.size, dtype=bool)
    current = tree.parent[rows].astype(np.int64)
    while (alive := np.flatnonzero((current != NONE) & ~found)).size:
        here = current[alive]
        found[alive] = named[tree.trace.name[here]]
        current[alive] = tree.parent[here]
    return found
