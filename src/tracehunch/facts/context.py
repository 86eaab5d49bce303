"""What all groups of facts work on: the tree, its calls, its GPU activities, and what can be known."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tracehunch.facts.activities import Activities, activities
from tracehunch.facts.activity_work import ActivityWork, activity_work
from tracehunch.facts.calls import OpCalls, op_calls
from tracehunch.facts.column import Bool, Rows
from tracehunch.facts.peaks import gpu_of
from tracehunch.hardware import Gpu
from tracehunch.trace.model import LAUNCH_CATS, Int64
from tracehunch.tree import NONE, Api, Ownership, Scope, Tree
from tracehunch.tree.ownership import Layout
from tracehunch.tree.timeline import expand

EVIDENCE: int = 64
"""Rows of evidence kept for one fact."""


class Context:
    """Columns that several groups share, each worked out once."""

    def __init__(self, tree: Tree, scopes: Sequence[Scope], ownership: Ownership) -> None:
        self.tree, self.trace = tree, tree.trace
        self.scopes, self.ownership = tuple(scopes), ownership
        self.n_calls = len(ownership.spans)
        self.first = np.array([scope.first_call for scope in scopes], dtype=np.int64)
        lengths = np.array([len(scope.calls) for scope in scopes], dtype=np.int64)
        self.scope_of_call = np.repeat(np.arange(len(scopes), dtype=np.int64), lengths)

    @cached_property
    def gpu(self) -> Activities:
        """The GPU activities."""
        return activities(self.tree)

    @cached_property
    def gpu_row_numbers(self) -> NDArray[np.object_]:
        """Their rows as Python's integers: many lists of them share one object for each."""
        return self.gpu.row.astype(object)

    @cached_property
    def gpu_time(self) -> tuple[Int64, Int64]:
        """Per call the sum of their durations: on all threads, and on its own."""
        return self.ownership.gpu.sums(self.gpu.dur_ns)

    @cached_property
    def op_calls(self) -> OpCalls:
        """The op calls behind them."""
        return op_calls(self.trace, self.gpu)

    @cached_property
    def inputs_of_use(self) -> list[set[int]]:
        """Use -> the distinct inputs of the calls that launched it, as positions in ``op_calls.given``."""
        calls, found = self.op_calls, [set[int]() for _ in self.gpu.uses]
        launched = np.flatnonzero(calls.of_activity != NONE) if calls.given else calls.of_activity[:0]
        code = self.gpu.use[launched] * len(calls.given) + calls.inputs[calls.of_activity[launched]]
        for use, at in (divmod(one, len(calls.given)) for one in np.unique(code).tolist()):
            found[use].add(at)
        return found

    @cached_property
    def model(self) -> Gpu | None:
        """The GPU, if it is one whose peaks are known."""
        return gpu_of(self.trace)

    @cached_property
    def work(self) -> ActivityWork:
        """What they compute and move."""
        return activity_work(self.tree, self.gpu, self.op_calls, self.model)

    @cached_property
    def has_calls(self) -> bool:
        """Whether runtime calls were recorded."""
        return bool(self.trace.rows(*LAUNCH_CATS).size)

    @cached_property
    def has_ops(self) -> bool:
        """Whether ops were recorded."""
        return bool(self.tree.ops.size)

    @cached_property
    def is_whole(self) -> Bool:
        """Calls that are the whole trace."""
        whole: Bool = self.ownership.spans.thread == NONE
        return whole

    @cached_property
    def gpu_known(self) -> Bool:
        """Calls whose GPU activities are known.

        Unknown are those of a trace without any, those that launched but have none (lost by the profiler),
        and all but the whole where the launches were not recorded.
        """
        if not self.gpu.row.size:
            return np.zeros(self.n_calls, dtype=bool)
        if not self.tree.launches.size:
            return self.is_whole
        known: Bool = (self.n_launched_work == 0) | (self.n_gpu > 0)
        return known

    @cached_property
    def n_gpu(self) -> Int64:
        """GPU activities of each call."""
        return self.ownership.gpu.sums()[0]

    @cached_property
    def n_launched_work(self) -> Int64:
        """Launches of each call that must show on the GPU (a memset of nothing does not)."""
        return self.ownership.launches.sums(self.tree.api[self.tree.launches] != Api.MEMSET)[0]

    @cached_property
    def nothing_lost(self) -> Bool:
        """Calls whose every launch has its GPU activity."""
        seen = np.zeros(len(self.trace), dtype=bool)
        launch = self.tree.launch[self.gpu.row]
        seen[launch[launch != NONE]] = True
        rows = self.tree.launches
        lost = ~seen[rows] & (self.tree.api[rows] != Api.MEMSET)
        nothing: Bool = self.ownership.launches.sums(lost)[0] == 0
        return nothing

    @cached_property
    def pair_scope(self) -> Int64:
        """Scope of each (call, GPU activity) pair."""
        return self.scope_of_call[self.ownership.gpu.pairs.call]

    def gpu_rows(self, wanted: Bool) -> Rows:
        """Evidence: rows of the wanted GPU activities of a call."""
        pairs = self.ownership.gpu.pairs

        def rows(calls: Int64) -> list[tuple[int, ...]]:
            hits = np.flatnonzero(wanted[pairs.item])
            first = np.searchsorted(hits, pairs.first[calls])
            last = np.minimum(np.searchsorted(hits, pairs.first[calls + 1]), first + EVIDENCE)
            found = self.gpu.row[pairs.item[hits[expand(first, last)[1]]]].tolist()
            ends = np.cumsum(last - first).tolist()
            return [tuple(found[start:end]) for start, end in pairwise([0, *ends])]

        return rows

    def work_rows(self, layout: Layout, rows_of_items: Int64) -> Rows:
        """Evidence: host rows of a call."""

        def rows(calls: Int64) -> list[tuple[int, ...]]:
            items = (layout.items_of(call)[0][:EVIDENCE] for call in calls.tolist())
            return [tuple(rows_of_items[some].tolist()) for some in items]

        return rows
