"""GPU activities as columns: kind, time, device, and which distinct use (name under an op) each one is."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.facts.occupancy import occupancies
from tracehunch.kernels import Identity, classify_activity, is_copy_kernel
from tracehunch.trace.model import UNKNOWN_NS, Cat, Float64, Int64, Trace
from tracehunch.tree import NONE, Tree
from tracehunch.tree.keys import numbered
from tracehunch.tree.names import is_step_name, names_that

KINDS: Final = ("kernel", "memcpy", "memset")
KERNEL, MEMCPY, MEMSET = range(3)
DIRECTIONS: Final = ("dtod", "htod", "dtoh", "ptop")

COPY_OPS: Final = frozenset(
    f"aten::{name}" for name in ("copy_", "clone", "contiguous", "to", "_to_copy", "cat", "stack", "repeat")
)
"""Ops that only copy, cast or lay out data, so that every kernel they launch does."""

_MULTIPLYING: Final = frozenset({"attention-forward", "attention-backward", "attention-split-kv"})
_ANYTHING: Final = "user-kernel"

_NOT_CALLED: Final = ("autograd::", "torch::autograd::")
_COLLECTIVE: Final = "record_param_comms"  # inside c10d's ops, and without a namespace
_MODULE_LAUNCHES: Final = ("hipModuleLaunchKernel", "hipExtModuleLaunchKernel")


def is_doubtful(identity: Identity) -> bool:
    """Tell whether a kernel's name says nothing of what it computes."""
    return not identity.classified or identity.algorithm == _ANYTHING


def multiplies(identity: Identity) -> bool:
    """Tell whether a kernel's name says that it multiplies matrices, as attention's main kernels do."""
    return not is_doubtful(identity) and (identity.unit != "none" or identity.algorithm in _MULTIPLYING)


@dataclass(frozen=True, slots=True)
class Use:
    """One distinct GPU activity name under one op."""

    name: str
    kind: int
    op: str  # innermost op that launched it; "" where unknown
    identity: Identity
    copies: bool  # a kernel that only copies, casts or lays out data

    @property
    def is_matrix(self) -> bool:
        """Whether it multiplies matrices (attention does)."""
        return self.kind == KERNEL and self.identity.unit != "none"

    @property
    def is_attention(self) -> bool:
        """Whether it is a kernel of a fused attention."""
        return self.kind == KERNEL and self.identity.algorithm.startswith("attention-")

    @property
    def direction(self) -> int:
        """Index into DIRECTIONS; NONE for all but memcpys, and for directions that have no key."""
        words = self.name.split(" ", 2)
        known = self.kind == MEMCPY and len(words) > 1 and words[1].lower() in DIRECTIONS
        return DIRECTIONS.index(words[1].lower()) if known else NONE


@dataclass(frozen=True, slots=True)
class Activities:
    """One entry per entry of the trace's GPU table."""

    row: Int64
    kind: Int64
    dur_ns: Int64  # 0 where unknown
    start_ns: Int64
    device: Int64
    op: Int64  # innermost op row; NONE
    called: Int64  # the op row that the program called; NONE
    use: Int64  # index into uses
    uses: tuple[Use, ...]
    occupancy: Float64  # percent, recomputed; nan where it cannot be

    def of_uses(self, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the activities whose use is wanted."""
        mask: NDArray[np.bool_] = wanted[self.use]
        return mask


def activities(tree: Tree) -> Activities:
    """Describe every GPU activity of a trace."""
    trace = tree.trace
    row = trace.gpu.row.astype(np.int64)
    op = tree.op[row].astype(np.int64)
    kind = trace.cat[row].astype(np.int64) - int(Cat.KERNEL)
    lengths = trace.dur_ns[row]
    use, uses = _uses(tree, row, kind, op)
    return Activities(
        row=row,
        kind=kind,
        dur_ns=np.where(lengths == UNKNOWN_NS, 0, lengths),
        start_ns=trace.start_ns[row],
        device=trace.gpu.device.astype(np.int64),
        op=op,
        called=called_ops(tree, op),
        use=use,
        uses=uses,
        occupancy=occupancies(trace),
    )


def called_ops(tree: Tree, op: Int64) -> Int64:
    """Return for innermost ops the ops that the program called.

    Ops of a library call each other (``aten::matmul``, ``aten::bmm``); the outermost of that unbroken run is
    what the program wrote. Autograd's nodes, annotations and compiled regions end it.
    """
    trace = tree.trace
    library = names_that(trace, is_library) & ~names_that(trace, is_step_name)
    called = op.copy()
    rising = np.flatnonzero(op != NONE)
    above: NDArray[np.signedinteger[Any]] = op[rising]
    while rising.size:
        goes_on = np.flatnonzero(library[trace.name[above]] & (trace.cat[above] == Cat.CPU_OP))
        rising, above = rising[goes_on], above[goes_on]
        called[rising] = above
        above = tree.parent[above]
        inside = np.flatnonzero(above != NONE)
        rising, above = rising[inside], above[inside]
    return called


def is_library(name: str) -> bool:
    """Tell names of ops that belong to a library: ops of it around them are what was called."""
    return ("::" in name and not name.startswith(_NOT_CALLED)) or name == _COLLECTIVE


def _uses(tree: Tree, row: Int64, kind: Int64, op: Int64) -> tuple[Int64, tuple[Use, ...]]:
    trace = tree.trace
    op_name = np.where(op == NONE, NONE, trace.name[op]) if row.size else op
    triton = _launched_by_triton(tree, row, op)
    n_names = len(trace.names) + 1
    key = ((trace.name[row].astype(np.int64) * n_names + op_name + 1) * len(KINDS) + kind) * 2 + triton
    distinct = numbered(key)
    vendor = _vendor(trace)
    uses = []
    for at in distinct.first.tolist():
        name, of_op = (
            trace.name_of(int(row[at])),
            "" if op_name[at] == NONE else trace.names[int(op_name[at])],
        )
        hints = (*vendor, "triton") if triton[at] else vendor
        identity = classify_activity(name, KINDS[int(kind[at])], hints=hints)
        copies = bool(kind[at] == KERNEL) and (is_copy_kernel(identity) or of_op in COPY_OPS)
        uses.append(Use(name, int(kind[at]), of_op, identity, copies))
    return distinct.number, tuple(uses)


def _launched_by_triton(tree: Tree, row: Int64, op: Int64) -> NDArray[np.bool_]:
    """Tell which kernels were launched as modules outside PyTorch's own ops, as Triton's launcher does."""
    trace = tree.trace
    launch = tree.launch[row].astype(np.int64)
    modules = names_that(trace, _MODULE_LAUNCHES.__contains__)
    aten = names_that(trace, lambda name: name.startswith("aten::"))
    direct = np.zeros(row.size, dtype=bool)
    known = launch != NONE
    direct[known] = (trace.cat[launch[known]] == Cat.DRIVER) | modules[trace.name[launch[known]]]
    with_op = op != NONE
    direct[with_op] &= ~aten[trace.name[op[with_op]]]
    direct &= trace.cat[row] == Cat.KERNEL
    return direct


def _vendor(trace: Trace) -> tuple[str, ...]:
    """Whose kernels these are, by the device's name or the calls' prefix."""
    devices = " ".join(device.name for device in trace.header.devices).lower()
    calls = {
        trace.names[name] for name in np.unique(trace.name[trace.rows(Cat.RUNTIME, Cat.DRIVER)]).tolist()
    }
    if "nvidia" in devices or any(name.startswith(("cuda", "cuLaunch")) for name in calls):
        return ("nvidia",)
    if "amd " in devices or any(name.startswith("hip") for name in calls):
        return ("amd",)
    return ()
