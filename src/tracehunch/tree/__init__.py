"""Trace -> Tree: which op launched which GPU activity, and which scopes own them."""

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import UNKNOWN_NS, Int32, Int64, Trace
from tracehunch.tree.apis import Api, api_column
from tracehunch.tree.autograd import Autograd, autograd, backward_links
from tracehunch.tree.captures import captured_ops
from tracehunch.tree.frames import Frames
from tracehunch.tree.host import Host, nest_host
from tracehunch.tree.launches import Launches, by_external_id, external_ids_agree, join
from tracehunch.tree.memory import reuse_freed
from tracehunch.tree.model import Call, Link, Scope, ScopeKind, Tree
from tracehunch.tree.nesting import NONE
from tracehunch.tree.notices import Linked, early_rows, notices
from tracehunch.tree.ownership import Ownership, Spans, Work
from tracehunch.tree.scopes import Owned, plan_rows, plan_scopes, scopes_of, spans_of
from tracehunch.tree.source import source_line
from tracehunch.tree.window import Window, window_of

__all__ = [
    "NONE",
    "Api",
    "Call",
    "Link",
    "Ownership",
    "Scope",
    "ScopeKind",
    "Tree",
    "Window",
    "link",
    "scope_of_rows",
    "source_line",
    "work_of",
]


def link(trace: Trace) -> Tree:
    """Work out how the rows of a trace hang together, and its scopes. Never fails on a readable trace."""
    reuse_freed()
    host = nest_host(trace)
    api = api_column(trace)
    launches = join(trace, api, host.parent)
    engine = autograd(trace, host)
    window = window_of(trace, host.steps)
    op, named_ops = _ops(trace, host, launches)
    replayed = captured_ops(trace, api, op, launches.launch, launches.captured)
    op[list(replayed)] = list(replayed.values())
    plans = plan_scopes(trace, host)
    ops = np.flatnonzero(host.ops)
    ownership = _ownership(trace, launches, ops, engine, spans_of(trace, plans, window))
    scopes = scopes_of(plans, Owned(ownership, launches.rows, ops, trace.gpu.row.astype(np.int64)))
    steps = [np.arange(s.first_call, s.first_call + len(s.calls)) for s in scopes if s.kind == "step"]
    linked = Linked(trace, host, api, launches, ownership, _joined(steps), window, named_ops, len(replayed))
    return Tree(
        trace=trace,
        parent=host.parent,
        op=op,
        launch=launches.launch,
        link=launches.link,
        n_children=host.n_children,
        autograd_threads=engine.threads,
        backward_of=backward_links(trace, host, engine.inside),
        notices=notices(linked),
        scopes=scopes,
        api=api,
        launches=launches.rows,
        ops=ops,
        engine=engine.inside,
        crossing=host.crossing,
        skewed=bool(early_rows(linked).size),
        ownership=ownership,
        window=window,
        frames=Frames(trace),
    )


def scope_of_rows(tree: Tree, name: str, rows: Int64) -> tuple[Scope, Ownership]:
    """Make a scope of any host rows, and what they own; calls inside calls are left out."""
    trace = tree.trace
    plan = plan_rows(trace, name, rows)
    ownership = tree.ownership.of(spans_of(trace, [plan], tree.window))
    (scope,) = scopes_of([plan], Owned(ownership, tree.launches, tree.ops, trace.gpu.row.astype(np.int64)))
    return scope, ownership


def _ops(trace: Trace, host: Host, launches: Launches) -> tuple[Int32, Int64]:
    """Innermost op per row; for GPU rows the launch's, else what the External id names (also returned)."""
    gpu = trace.gpu.row.astype(np.int64)
    launch = launches.launch[gpu]
    op = host.op.copy()
    named = np.full(gpu.size, NONE, dtype=np.int64)
    of_launch = np.where(launch == NONE, NONE, op[launch])
    if external_ids_agree(trace, gpu, of_launch):
        lone = launches.rows[op[launches.rows] == NONE]
        op[lone] = by_external_id(trace, lone, host.ops)
        of_launch = np.where(launch == NONE, NONE, op[launch])
        unknown = np.flatnonzero(of_launch == NONE)
        named[unknown] = by_external_id(trace, gpu[unknown], host.ops)
    op[gpu] = np.where(of_launch == NONE, named, of_launch)
    return op, named


def _ownership(trace: Trace, launches: Launches, ops: Int64, engine: Autograd, spans: Spans) -> Ownership:
    launch = launches.launch[trace.gpu.row].astype(np.int64)
    return Ownership(
        spans,
        launches=work_of(trace, launches.rows, engine.inside),
        ops=work_of(trace, ops, engine.inside),
        gpu=work_of(trace, launch, engine.inside),
        engine_threads=np.array(sorted(engine.dedicated), dtype=np.int64),
    )


def work_of(trace: Trace, rows: Int64, inside: NDArray[np.bool_]) -> Work:
    """Host rows as work; a row that is NONE, or has no usable start, is of no known thread."""
    if not len(trace):
        none = np.zeros(0, dtype=np.int64)
        return Work(none, none, none, none.astype(bool))
    known = (rows != NONE) & (trace.start_ns[rows] != UNKNOWN_NS)
    safe = np.where(known, rows, 0)
    return Work(
        thread=np.where(known, trace.thread[safe], NONE).astype(np.int64),
        process=np.where(known, trace.process[safe], NONE).astype(np.int64),
        start_ns=trace.start_ns[safe],
        engine=known & inside[safe],
    )


def _joined(parts: list[Int64]) -> Int64:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
