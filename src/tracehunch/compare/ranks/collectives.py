"""Calls of collectives of one rank in columns: what each moved, in which group, when, and how much showed.

An entry is a call and the kernels that did its work on one device: from the start of the first to the end of
the last. Several kernels of one call (a broadcast for each tensor) are one entry; so are several calls that
one kernel does (a coalesced group): their bytes are added up, and their kind is theirs joined by "+" where
they differ.

What a call was is told by the kernel's args, else by those of the ``record_param_comms`` around its launch,
else by the names of c10d's ops and annotations, else by the kernel's name. A send or receive is a call in a
group of two ranks, (from, to), that is called after the one it was made in, as "0:2->3"; sends and receives
of one batch are a call of all ranks that they involve ("0:2<->3"). Their sequence numbers count something
else on every rank, and are left out. Kernels that were launched before the recording began, or by no call
that is recorded, are in no group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from tracehunch.checks._activities import uses
from tracehunch.checks._overlap import alone_ns, device_of
from tracehunch.checks.exposed_communication import collectives, computing, is_collective
from tracehunch.compare.ranks.calls import Launched, coalesced, launched
from tracehunch.compare.ranks.comms import Comm, Job
from tracehunch.compare.ranks.model import Collectives
from tracehunch.compare.ranks.reader import Reader
from tracehunch.compare.ranks.summary import calls_of_steps
from tracehunch.trace.model import ABSENT, UNKNOWN_NS
from tracehunch.tree import NONE, Api
from tracehunch.tree.names import step_number
from tracehunch.units import NAME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.facts.model import Facts
    from tracehunch.kernels.identity import Identity
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree

T = TypeVar("T")

_LIBRARIES: Final = ("nccl", "rccl", "msccl")


_REDUCING: Final = ("allreduce", "reduce", "reducescatter")
"""Collectives whose kernels depend on the type; others move bytes, whatever their name says."""
_DTYPES: Final = {"bf16": "BFloat16", "fp16": "Half", "fp32": "Float", "fp64": "Double", "int32": "Int",
                  "int64": "Long", "int8": "Char", "uint8": "Byte"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Entry:
    """A call on a device: positions in the kernels, and what is known of it."""

    kernels: list[int]
    comm: Comm


def collectives_of(facts: Facts, base_ns: int) -> Collectives:
    """Return the collectives of a rank; ``base_ns`` makes the stamps absolute."""
    tree = facts.tree
    rows = collectives(facts)
    rows = rows[tree.trace.start_ns[rows] != UNKNOWN_NS]
    kernels = launched(tree, rows)
    entries = _entries(facts, kernels)
    exposed = alone_ns(tree.trace, rows, computing(facts))
    return _columns(tree, kernels, entries, exposed, base_ns)


def _entries(facts: Facts, kernels: Launched) -> list[_Entry]:
    """Make the entries, by launch, or by start where that is not known."""
    trace = facts.tree.trace
    comms, keys = _comms(facts, kernels)
    device = device_of(trace, kernels.row).tolist()
    found: dict[tuple[object, int], _Entry] = {}
    for at, comm in enumerate(comms):
        found.setdefault((keys[at], device[at]), _Entry([], comm)).kernels.append(at)
    begun = trace.start_ns[kernels.row]
    moments = np.where(kernels.launch == NONE, begun, trace.start_ns[kernels.launch]).tolist()
    start = begun.tolist()  # kernels of a graph share a launch
    firsts = ((entry.kernels[0], entry) for entry in found.values())
    ordered = sorted(((moments[at], start[at], at, entry) for at, entry in firsts), key=lambda one: one[:3])
    return [entry for *_, entry in ordered]


def _comms(facts: Facts, kernels: Launched) -> tuple[list[Comm], list[object]]:
    """For each kernel what call it belongs to, and a key that kernels of the same call share."""
    tree = facts.tree
    reader = Reader(tree, Job.of(tree.trace.header))
    identity = _identities(facts, kernels.row)
    own = kernels.own.tolist()
    comms = [reader.comm(row, call) for row, call in zip(kernels.row.tolist(), own, strict=True)]
    keys: list[object] = [("kernel", at) if call == NONE else ("call", call) for at, call in enumerate(own)]
    single = (kernels.launch != NONE) & (tree.api[kernels.launch] != Api.GRAPH)
    left = [
        at
        for at, comm in enumerate(comms)
        if comm is None and single[at] and identity[at].library in _LIBRARIES
    ]
    together = coalesced(tree, kernels, np.array(left, dtype=np.int64))
    for at, calls in together.items():
        comms[at] = reader.joined(calls)
        keys[at] = ("group", calls)
    named = [
        _named(tree, kernels, at, identity[at]) if comm is None else comm for at, comm in enumerate(comms)
    ]
    return named, keys


def _identities(facts: Facts, rows: Int64) -> list[Identity]:
    """Return what the names of kernels of collectives say."""
    of_row = {row: use.identity for use in uses(facts) if is_collective(use) for row in use.rows}
    return [of_row[row] for row in rows.tolist()]


def _named(tree: Tree, kernels: Launched, at: int, identity: Identity) -> Comm:
    """Return what names tell: those of c10d's ops, else that of the kernel."""
    library = int(kernels.library[at])
    kind = dict(identity.fields).get("collective", "").partition(" ")[0].lower()
    dtype = _DTYPES.get(identity.dtype or "", "") if kind in _REDUCING else ""
    if library != NONE:
        kind = tree.trace.name_of(library).rpartition(":")[2].strip("_")[:NAME_LIMIT] or kind
    return Comm(kind or "unknown", None, dtype, ABSENT, ABSENT, ABSENT)


def _columns(
    tree: Tree, kernels: Launched, entries: Sequence[_Entry], exposed: Int64, base_ns: int
) -> Collectives:
    trace = tree.trace
    first = np.array([entry.kernels[0] for entry in entries], dtype=np.int64)
    of_entry = np.repeat(np.arange(len(entries)), [len(entry.kernels) for entry in entries])
    member = np.array([at for entry in entries for at in entry.kernels], dtype=np.int64)
    launch = kernels.launch[first]
    start = np.full(len(entries), np.iinfo(np.int64).max)
    end = np.full(len(entries), UNKNOWN_NS)
    np.minimum.at(start, of_entry, trace.start_ns[kernels.row[member]])
    np.maximum.at(end, of_entry, trace.end_ns()[kernels.row[member]])
    shown = np.zeros(len(entries), dtype=np.int64)
    np.add.at(shown, of_entry, exposed[member])
    comms = [entry.comm for entry in entries]
    kind, kinds = _coded([comm.kind for comm in comms])
    group, groups = _coded([comm.group for comm in comms])
    dtype, dtypes = _coded([comm.dtype or None for comm in comms])
    op, ops = _coded([_op_name(tree, kernels, at) for at in first.tolist()])
    return Collectives(
        kind=kind,
        group=group,
        dtype=dtype,
        op=op,
        number=_numbers(group),
        sequence=np.array([comm.sequence for comm in comms], dtype=np.int64),
        in_bytes=np.array([comm.in_bytes for comm in comms], dtype=np.int64),
        out_bytes=np.array([comm.out_bytes for comm in comms], dtype=np.int64),
        launch_ns=np.where(launch == NONE, ABSENT, trace.start_ns[launch] + base_ns),
        start_ns=start + base_ns,
        end_ns=end + base_ns,
        exposed_ns=shown,
        device=device_of(trace, kernels.row[first]).astype(np.int32),
        step=_step_numbers(tree, launch),
        event=trace.event[kernels.row[first]],
        kinds=kinds,
        groups=groups,
        dtypes=dtypes,
        ops=ops,
        peer=np.array([ABSENT if comm.peer is None else comm.peer for comm in comms], dtype=np.int32),
    )


def _coded(values: Sequence[T | None]) -> tuple[Any, tuple[T, ...]]:
    """Return values as positions in the distinct ones, in order of appearance; ABSENT for None."""
    numbers: dict[T, int] = {}
    codes = [ABSENT if one is None else numbers.setdefault(one, len(numbers)) for one in values]
    return np.array(codes, dtype=np.int32), tuple(numbers)


def _numbers(group: Any) -> Int64:
    """Count the entries of each group; ABSENT for those of none."""
    found = np.full(group.size, ABSENT, dtype=np.int64)
    for number in np.unique(group[group != ABSENT]).tolist():
        mine = group == number
        found[mine] = np.arange(np.count_nonzero(mine))
    return found


def _op_name(tree: Tree, kernels: Launched, at: int) -> str | None:
    """Name what called the collective: what is around c10d's own ops, else the outermost of those."""
    row = int(kernels.caller[at]) if kernels.caller[at] != NONE else int(kernels.library[at])
    return None if row == NONE else tree.trace.name_of(row)[:NAME_LIMIT]


def _step_numbers(tree: Tree, launch: Int64) -> Any:
    """Return the number of the profiler's step in whose time each launch lies, whatever its thread."""
    calls = calls_of_steps(tree)
    spans, trace = tree.ownership.spans, tree.trace
    found = np.full(launch.size, ABSENT, dtype=np.int32)
    calls = calls[np.argsort(spans.start_ns[calls], kind="stable")]
    if not calls.size or not launch.size:
        return found
    numbers = np.array([step_number(trace.name_of(int(row))) for row in spans.row[calls].tolist()])
    moment = np.where(launch == NONE, UNKNOWN_NS, trace.start_ns[launch])
    at = np.searchsorted(spans.start_ns[calls], moment, "right") - 1
    inside = (at >= 0) & (moment < spans.end_ns[calls][at])
    found[inside] = numbers[at[inside]]
    return found
