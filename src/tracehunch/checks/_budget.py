"""How much time a scope has: what all findings in it together can save of a call at most."""

import numpy as np

from tracehunch.facts.model import Facts
from tracehunch.trace.model import UNKNOWN_NS


def budgets_us(facts: Facts) -> dict[str, float]:
    """Return microseconds a call, by the name of the scope.

    It is the time of the median call on the host, as reports show it, or, where the GPU works on after the
    host has left, until the last GPU activity that the call owns has ended.
    """
    tree, trace = facts.tree, facts.tree.trace
    spans, pairs = tree.ownership.spans, tree.ownership.gpu.pairs
    end = spans.end_ns.copy()
    rows = trace.gpu.row[pairs.item]
    known = trace.start_ns[rows] != UNKNOWN_NS
    np.maximum.at(end, pairs.call[known], trace.end_ns()[rows[known]])
    length = np.maximum(end - spans.start_ns, 0) / 1e3
    found: dict[str, float] = {}
    for scope in facts.scopes:
        first, n = scope.scope.first_call, len(scope.scope.calls)
        found.setdefault(scope.scope.name, float(np.median(length[first : first + n])) if n else 0.0)
    return found
