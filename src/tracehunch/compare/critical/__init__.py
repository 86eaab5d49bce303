"""The critical path of a step: the chain of host work, launches, kernels, copies and waits that bounds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehunch.checks.exposed_communication import collectives
from tracehunch.compare.critical.graph import graph_of
from tracehunch.compare.critical.model import Contributor, CriticalPath, Kind, WhatIf
from tracehunch.compare.critical.notes import notes_of
from tracehunch.compare.critical.path import Stretches, contributors_of, kinds_of, path_of
from tracehunch.compare.critical.scope import target_of
from tracehunch.compare.critical.simulate import Simulator
from tracehunch.compare.critical.what_ifs import WhatIfs
from tracehunch.tree import NONE

if TYPE_CHECKING:
    from tracehunch.facts.model import Facts

__all__ = ["Contributor", "CriticalPath", "Kind", "WhatIf", "critical_path"]


def critical_path(facts: Facts, scope: str | None = None) -> CriticalPath:
    """Find what bounds a step: ``ProfilerStep#N``, or the call of median duration of a scope.

    Raises:
        TracehunchError: the trace has no such scope, or nothing with a time.

    """
    tree = facts.tree
    target = target_of(tree, scope)
    graph = graph_of(tree, target.window)
    simulator = Simulator(graph)
    run = simulator.run(graph.edges.weight_ns)
    walk = path_of(graph, simulator, run, target)
    apart = Stretches(tree, graph, collectives(facts))
    stretches = list(apart.of(walk))
    residual = np.array(run.time_ns, dtype=np.int64) - graph.time_ns
    residual_ns = int(residual[np.argmax(np.abs(residual))]) if residual.size else 0
    begin = walk.start_ns[-1] if walk.edge else target.begin_ns
    before_ns = max(begin - target.begin_ns, 0)
    end = walk.end_ns[0] if walk.edge else begin
    kinds = kinds_of(stretches)
    asked = WhatIfs(graph, simulator, target, apart, end - begin)
    answers = asked.answers(stretches)
    notes = notes_of(
        tree,
        graph,
        apart,
        dict(kinds),
        before_ns=before_ns,
        residual_ns=residual_ns,
        averaged_over=asked.averaged_over,
    )
    return CriticalPath(
        scope=target.scope.name,
        name=target.name,
        chosen=target.chosen,
        calls=len(target.scope.calls),
        host_ns=target.end_ns - target.begin_ns,
        start_ns=begin,
        end_ns=end,
        before_ns=before_ns,
        kinds=kinds,
        contributors=contributors_of(tree, stretches),
        what_ifs=answers,
        notes=tuple(notes),
        residual_ns=residual_ns,
        event=None if target.call.row == NONE else int(tree.trace.event[target.call.row]),
    )
