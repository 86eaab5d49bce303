"""CUDA graphs."""

import numpy as np

from tracehunch.facts.column import Column
from tracehunch.facts.context import Context
from tracehunch.tree import NONE, Api, work_of


def columns(context: Context) -> list[Column]:
    """Count the replays of each call, and the activities of one."""
    tree, gpu = context.tree, context.gpu
    launch = tree.launch[gpu.row].astype(np.int64)
    if not tree.launches.size:
        return []
    n_gpu = np.bincount(launch[launch != NONE], minlength=len(context.trace))
    rows = tree.launches[(tree.api[tree.launches] == Api.GRAPH) | (n_gpu[tree.launches] > 1)]
    layout = context.ownership.layout(work_of(context.trace, rows, tree.engine))
    replays, own = layout.sums()
    found = [Column("graph", replays, own, None, context.work_rows(layout, rows))]
    if gpu.row.size and rows.size:
        activities = layout.sums(n_gpu[rows])[0]
        found.append(
            Column(
                "graph.activities",
                activities // np.maximum(replays, 1),
                None,
                (replays > 0) & context.gpu_known,
            )
        )
    return found
