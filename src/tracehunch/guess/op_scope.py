"""An op as a scope: what all calls of it own, measured as if the user had annotated each of them."""

import numpy as np

from tracehunch.facts import measure_rows
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64, Trace


def op_scope(name: str, facts: Facts) -> ScopeFacts | None:
    """Return the facts of an op by its name, with or without ``aten::``; None where there is no such op."""
    for spelled in (name, f"aten::{name}"):
        rows = _rows(facts.tree.trace, spelled)
        if rows.size:
            return measure_rows(facts.tree, spelled, rows.tolist())
    return None


def op_names(facts: Facts) -> list[str]:
    """All ops that the trace has."""
    trace = facts.tree.trace
    return [trace.names[number] for number in np.unique(trace.name[trace.rows(Cat.CPU_OP)]).tolist()]


def _rows(trace: Trace, name: str) -> Int64:
    if name not in trace.names:
        return np.zeros(0, dtype=np.int64)
    named = (trace.cat == Cat.CPU_OP) & (trace.name == trace.names.index(name))
    return np.flatnonzero(named & (trace.start_ns != UNKNOWN_NS) & (trace.dur_ns != UNKNOWN_NS))
