"""What each call of each scope of one trace did: the facts of ``tracehunch.facts``, call by call."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.over_time.alone import alone_us, occurrences
from tracehunch.compare.over_time.model import COMPUTE, ScopeCalls, Uses
from tracehunch.facts import KEYS, compiled, compute, copies, counts, graphs, roofline, sdpa, times
from tracehunch.facts.context import Context
from tracehunch.trace.model import ABSENT, UNKNOWN_NS
from tracehunch.tree import NONE, Scope
from tracehunch.tree.names import step_number
from tracehunch.tree.ownership import Spans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.facts.activities import Activities
    from tracehunch.facts.column import Bool, Column, Words
    from tracehunch.facts.model import Facts, Value
    from tracehunch.trace.model import Float64, Int64, Trace
    from tracehunch.tree import Ownership, Tree

_DIGEST: Final = 4
_COLUMNS: Final = (counts, times, copies, compute, graphs, compiled, roofline)
_WORDS: Final = (counts, sdpa, compute)
_OF_SCOPES: Final = frozenset({"compiled.last_compile", "compiled.last_recompile", "dominant"})
"""Keys that mean nothing of one call: positions among the calls; an order that noise decides."""

OUTSIDE: Final = "outside"
BLOCKS: Final = "grid_blocks"
ELEMENTS: Final = "input_elements"
KEPT: Final = "kept_bytes"
ALONE: Final = "gpu_time_beside_no_collective"
COLLECTIVE: Final = "collective_time"
NAMES: Final = "names"
"""What is watched beside the facts, to tell causes: time of a call in no op, thread blocks of its kernels,
elements of the tensors that its ops were given, memory that it took and did not give back, which kernels
(without a GPU: leaf ops) ran, as their number and a digest of their names; and, since a collective's kernel
runs while it waits for other ranks, the GPU time without and of collectives, and that of kernels
which run beside none (``series`` adds it: of the same kernels in all calls)."""


def scopes_of(facts: Facts, *, every_scope: bool) -> list[Scope]:
    """Return the scopes to watch: annotations and steps, else the whole; all of them if asked."""
    scopes = [one.scope for one in facts.scopes]
    kinds = {"annotation", "step", "framework", "module"} if every_scope else {"annotation", "step"}
    chosen = [one for one in scopes if one.kind in kinds and len(one.calls)]
    return chosen or [one for one in scopes if one.kind == "whole" and len(one.calls)]


def calls_of(facts: Facts, base_ns: int, *, every_scope: bool) -> dict[str, ScopeCalls]:
    """Measure every call; stamps of the result are absolute if ``base_ns`` makes them so."""
    tree, scopes = facts.tree, scopes_of(facts, every_scope=every_scope)
    ownership = _ownership(tree, scopes)
    context = Context(tree, _one_by_one(scopes), ownership)
    values = {**_values(context), **_watched(context)}
    words = _words(context)
    steps = _steps(tree, ownership.spans)
    uses = _uses(context)
    words[NAMES] = _digests(uses, context.n_calls)
    found: dict[str, ScopeCalls] = {}
    first = 0
    for scope in scopes:
        mine = slice(first, first + len(scope.calls))
        first = mine.stop
        order = mine.start + np.argsort(ownership.spans.start_ns[mine], kind="stable")
        found.setdefault(
            scope.name,
            ScopeCalls(
                name=scope.name,
                kind=scope.kind,
                start_ns=ownership.spans.start_ns[order] + base_ns,
                end_ns=ownership.spans.end_ns[order] + base_ns,
                step=steps[order],
                values={key: column[order] for key, column in values.items()},
                words={key: tuple(of[at] for at in order.tolist()) for key, of in words.items()},
                uses=_part(uses, order),
            ),
        )
    return found


def _ownership(tree: Tree, scopes: Sequence[Scope]) -> Ownership:
    """Return the calls of some scopes, one after the other, and what they own."""
    spans = tree.ownership.spans
    rows = [np.arange(one.first_call, one.first_call + len(one.calls)) for one in scopes]
    at = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    columns = (spans.row, spans.thread, spans.process, spans.start_ns, spans.end_ns)
    return tree.ownership.of(Spans(*(column[at] for column in columns)))


def _one_by_one(scopes: Sequence[Scope]) -> list[Scope]:
    """Return a scope for each call, so that facts of scopes are facts of calls.

    Of ``calls`` facts ask only how many they are; where each is, ``first_call`` says.
    """
    of_call = [scope for scope in scopes for _ in range(len(scope.calls))]
    one = {scope.name: scope.calls[:1] for scope in scopes}
    return [Scope(scope.name, scope.kind, one[scope.name], at) for at, scope in enumerate(of_call)]


def _values(context: Context) -> dict[str, Float64]:
    columns = [column for group in _COLUMNS for column in group.columns(context)]
    return {column.key: _plain(column) for column in columns if column.key not in _OF_SCOPES}


def _plain(column: Column) -> Float64:
    """Values as floats in the key's unit; nan where they are not known."""
    values = column.values.astype(np.float64)
    if KEYS[column.key].unit == "us":
        values /= 1e3
    if column.known is not None:
        values[~column.known] = np.nan
    return values


def _words(context: Context) -> dict[str, list[Value | None]]:
    found: list[Words] = [word for group in _WORDS for word in group.words(context)]
    return {
        one.key: [one.values.get(call) for call in range(context.n_calls)]
        for one in found
        if one.key not in _OF_SCOPES and one.values
    }


def _watched(context: Context) -> dict[str, Float64]:
    """Return what is measured beside the facts, as far as the trace shows it."""
    trace, tree = context.trace, context.tree
    found: dict[str, Float64] = {}
    grid = trace.gpu.grid
    if grid.size and (grid > 0).any():
        blocks = np.where((grid > 0).all(axis=1), np.maximum(grid, 0).prod(axis=1), 0)
        found[BLOCKS] = _known(context, context.ownership.gpu.sums(blocks)[0])
    if trace.header.recorded.shapes and tree.ops.size:
        found[ELEMENTS] = context.ownership.ops.sums(_elements(trace, tree.ops))[0].astype(np.float64)
    if trace.memory.start_ns.size:
        found[KEPT] = _kept(context)
    return found | _without_collectives(context)


def _without_collectives(context: Context) -> dict[str, Float64]:
    gpu = context.gpu
    theirs = _collective(gpu)
    if not theirs.any():
        return {}
    sums = context.ownership.gpu.sums
    return {
        COMPUTE: _known(context, sums(np.where(theirs, 0, gpu.dur_ns))[0]) / 1e3,
        COLLECTIVE: _known(context, sums(np.where(theirs, gpu.dur_ns, 0))[0]) / 1e3,
    }


def _collective(gpu: Activities) -> Bool:
    return gpu.of_uses(np.array([use.identity.algorithm == "collective" for use in gpu.uses], dtype=bool))


def _known(context: Context, values: Int64) -> Float64:
    return np.where(context.gpu_known, values.astype(np.float64), np.nan)


def _elements(trace: Trace, ops: Int64) -> Int64:
    """Elements of the tensors that each op was given."""
    which, given = trace.inputs_of(ops)
    sizes = np.array([_size(one.dims) for one in given], dtype=np.int64)
    return sizes[which] if sizes.size else np.zeros(ops.size, dtype=np.int64)


def _size(dims: object) -> int:
    total = 0
    for one in dims if isinstance(dims, list) else ():
        if isinstance(one, list) and one and all(isinstance(n, int) and n >= 0 for n in one):
            product = 1
            for n in one:
                product *= n
            total += product
    return min(total, 1 << 48)


def _kept(context: Context) -> Float64:
    """Bytes taken less bytes given back during each call, on the GPU if anything was taken there."""
    memory, spans = context.trace.memory, context.ownership.spans
    on_gpu = (memory.device_type == 1).any()
    mine = np.flatnonzero((memory.device_type == int(on_gpu)) & (memory.start_ns != UNKNOWN_NS))
    order = mine[np.argsort(memory.start_ns[mine], kind="stable")]
    total = np.concatenate([[0], np.cumsum(memory.bytes[order])])
    times_ns = memory.start_ns[order]
    inside = total[np.searchsorted(times_ns, spans.end_ns)] - total[np.searchsorted(times_ns, spans.start_ns)]
    return np.asarray(inside, dtype=np.float64)


def _steps(tree: Tree, spans: Spans) -> Int64:
    """Per call the number of the ProfilerStep it is in, or is; ABSENT outside."""
    number = np.full(len(spans), ABSENT, dtype=np.int64)
    scope = next((one for one in tree.scopes if one.kind == "step"), None)
    if scope is None:
        return number
    calls = sorted(scope.calls, key=lambda call: call.start_ns)
    start = np.array([call.start_ns for call in calls], dtype=np.int64)
    end = np.array([call.end_ns for call in calls], dtype=np.int64)
    names = np.array([step_number(tree.trace.name_of(call.row)) for call in calls], dtype=np.int64)
    at = np.searchsorted(start, spans.start_ns, "right") - 1
    inside = (at >= 0) & (spans.start_ns < end[np.maximum(at, 0)]) & (spans.row != NONE)
    number[inside] = names[at[inside]]
    return number


def _uses(context: Context) -> Uses:
    """Names of what each call launched, with counts and times; leaf ops where there is no GPU."""
    trace, gpu = context.trace, context.gpu
    alone = None
    if gpu.row.size:
        pairs = context.ownership.gpu.pairs
        call, row, length = pairs.call, gpu.row[pairs.item], gpu.dur_ns[pairs.item]
        collective = _collective(gpu)
        alone = alone_us(gpu, collective)[pairs.item] if collective.any() else None
    else:
        ops = context.tree.ops
        leaves = context.tree.n_children[ops] == 0
        pairs = context.ownership.ops.pairs
        keep = leaves[pairs.item]
        call, row = pairs.call[keep], ops[pairs.item[keep]]
        length = np.where(trace.dur_ns[row] == UNKNOWN_NS, 0, trace.dur_ns[row])
    of_name = call * max(len(trace.names), 1) + trace.name[row]
    key, at, count = np.unique(of_name, return_inverse=True, return_counts=True)
    total = np.bincount(at.reshape(-1), weights=length, minlength=key.size).astype(np.int64)
    of_call, name = np.divmod(key, max(len(trace.names), 1))
    used, code = np.unique(name, return_inverse=True)
    names = tuple(trace.names[number] for number in used.tolist())
    lengths = np.zeros(0) if alone is None else alone[np.lexsort((gpu.start_ns[pairs.item], of_name))]
    return Uses(names, of_call, code.reshape(-1).astype(np.int64), count.astype(np.int64), total, lengths)


def _digests(uses: Uses, n_calls: int) -> list[Value | None]:
    """Return for each call how many different names it ran, and a digest that tells sets of names apart."""
    bounds = np.searchsorted(uses.call, np.arange(n_calls + 1))
    known: dict[bytes, str] = {}
    found: list[Value | None] = []
    for low, high in pairwise(bounds.tolist()):
        codes = uses.name[low:high].tobytes()
        if codes not in known:
            names = "\n".join(sorted(uses.names[code] for code in uses.name[low:high].tolist()))
            digest = sha256(names.encode("utf-8", "surrogatepass")).hexdigest()
            known[codes] = f"{high - low} #{digest[:_DIGEST]}"
        found.append(known[codes] if high > low else None)
    return found


def _part(uses: Uses, calls: Int64) -> Uses:
    """Return the uses of some calls, numbered anew in the order given, with only their names."""
    place: Mapping[int, int] = {call: at for at, call in enumerate(calls.tolist())}
    keep = np.flatnonzero(np.isin(uses.call, calls))
    renumbered = np.array([place[call] for call in uses.call[keep].tolist()], dtype=np.int64)
    order = np.argsort(renumbered, kind="stable")
    some = uses_at(uses, keep[order], renumbered[order])
    used, code = np.unique(some.name, return_inverse=True)
    names = tuple(uses.names[number] for number in used.tolist())
    return replace(some, names=names, name=code.reshape(-1).astype(np.int64))


def uses_at(uses: Uses, at: Int64, call: Int64) -> Uses:
    """Return some uses, in the order given, as those of calls ``call``."""
    alone = uses.alone_us[occurrences(uses.count, at)] if uses.alone_us.size else uses.alone_us
    return Uses(uses.names, call, uses.name[at], uses.count[at], uses.time_ns[at], alone)
