"""Compilations: how many, how often again, and in which of a scope's calls the last one was."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from tracehunch.facts.column import Bool, Column
from tracehunch.facts.compiled.compilations import compilations
from tracehunch.facts.compiled.rows import annotated, is_region
from tracehunch.facts.compiler import is_compiler
from tracehunch.facts.context import Context
from tracehunch.facts.intervals import Cover
from tracehunch.trace.model import UNKNOWN_NS, Int64
from tracehunch.tree import work_of
from tracehunch.tree.names import names_that

_COMPILING: Final = frozenset(
    {
        "entire_frame_compile",
        "entire_frame_compile (dynamo_timed)",
        "_compile.compile_inner",
        "_compile.compile_inner (dynamo_timed)",
        "_compile.<locals>.compile_inner (dynamo_timed)",
    }
)
"""Phases that last as long as the compilation of a frame, by version of PyTorch."""


def compile_columns(context: Context) -> Iterator[Column]:
    """Yield what is known of compilations, for each call or, of repeated and last ones, for each scope."""
    tree = context.tree
    phases = annotated(tree, is_compiler)
    if not phases.size and not annotated(tree, is_region).size:
        return
    yield Column("compiled.compile_time", _covered(context, annotated(tree, _COMPILING.__contains__)))
    found = compilations(tree)
    again = np.array(sorted(one.row for one in found if one.version > 0), dtype=np.int64)
    told = not found or names_that(tree.trace, _has_id).any()
    several = np.isin(
        context.scope_of_call, [n for n, one in enumerate(context.scopes) if one.kind != "whole"]
    )
    yield _last(context, "compiled.last_compile", phases, several)
    if told:
        yield _most(context, "compiled.recompiles", again)
        yield _last(context, "compiled.last_recompile", again, several)


def _has_id(name: str) -> bool:
    return "compile_id=" in name


def _most(context: Context, key: str, rows: Int64) -> Column:
    """For all calls of a scope alike: how many of these rows the call has that has most of them.

    What happens in one call of many would not show in a median.
    """
    layout = context.ownership.layout(work_of(context.trace, rows, context.tree.engine))
    of_call, scope_of_call = layout.sums()[0], context.scope_of_call
    most = np.zeros(len(context.scopes), dtype=np.int64)
    np.maximum.at(most, scope_of_call, of_call)
    found = np.flatnonzero((of_call > 0) & (of_call == most[scope_of_call]))[::-1]
    where = context.first.astype(np.int64)
    where[scope_of_call[found]] = found  # the first of them stays

    def evidence(calls: Int64) -> list[tuple[int, ...]]:
        return context.work_rows(layout, rows)(where[scope_of_call[calls]])

    return Column(key, most[scope_of_call], None, None, evidence)


def _last(context: Context, key: str, rows: Int64, known: Bool) -> Column:
    """For all calls of a scope alike: the number of the last one with any of these rows, from 1; else 0."""
    layout = context.ownership.layout(work_of(context.trace, rows, context.tree.engine))
    number = np.arange(context.n_calls) - context.first[context.scope_of_call] + 1
    last = np.zeros(len(context.scopes), dtype=np.int64)
    np.maximum.at(last, context.scope_of_call, np.where(layout.sums()[0] > 0, number, 0))

    def evidence(calls: Int64) -> list[tuple[int, ...]]:
        late = [int(call + max(last[context.scope_of_call[call]] - 1, 0)) for call in calls.tolist()]
        return context.work_rows(layout, rows)(np.array(late, dtype=np.int64))

    return Column(key, last[context.scope_of_call], None, known, evidence)


def _covered(context: Context, rows: Int64) -> Int64:
    """Time of each call that lies in these rows, on any thread."""
    trace, spans = context.trace, context.ownership.spans
    rows = rows[(trace.start_ns[rows] != UNKNOWN_NS) & (trace.dur_ns[rows] != UNKNOWN_NS)]
    cover = Cover(trace.start_ns[rows], trace.end_ns()[rows])
    return cover.until(spans.end_ns) - cover.until(spans.start_ns)
