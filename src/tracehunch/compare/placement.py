"""Which call of the scopes that are compared a thing belongs to: the innermost, so that it counts once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracehunch.tree import NONE, Api
from tracehunch.tree.ownership import Spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.facts.model import Facts, ScopeFacts
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Ownership
    from tracehunch.tree.ownership import Layout

Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of some scopes, those around others first."""

    ownership: Ownership
    scope: Int64  # per call, position in the scopes given
    n_scopes: int

    def owners(self, layout: Layout, n_items: int) -> Int64:
        """Per item of some work the innermost call that owns it; NONE where none does."""
        owner = np.full(n_items, NONE, dtype=np.int64)
        pairs = layout.pairs  # sorted by call, so that the innermost comes last
        owner[pairs.item] = pairs.call
        return owner

    def n_calls(self, known: Bool | None = None) -> Int64:
        """How many calls each scope has; only those that are ``known``, a mask, where it is given."""
        scope = self.scope if known is None else self.scope[known]
        return np.bincount(scope, minlength=self.n_scopes).astype(np.int64)


def calls_of(facts: Facts, scopes: Sequence[ScopeFacts]) -> Calls:
    """Return the calls of some scopes, longest first."""
    spans = facts.tree.ownership.spans
    chosen, scope_of = [], []
    for position, one in enumerate(scopes):
        first, n = one.scope.first_call, len(one.scope.calls)
        chosen.append(np.arange(first, first + n, dtype=np.int64))
        scope_of.append(np.full(n, position, dtype=np.int64))
    rows = np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int64)
    scope = np.concatenate(scope_of) if scope_of else np.zeros(0, dtype=np.int64)
    is_inner = np.array([_rank(one) for one in scopes], dtype=np.int64)[scope] if rows.size else rows
    order = np.lexsort((is_inner, spans.start_ns[rows] - spans.end_ns[rows], spans.thread[rows] != NONE))
    rows, scope = rows[order], scope[order]
    columns = (spans.row, spans.thread, spans.process, spans.start_ns, spans.end_ns)
    picked = Spans(*(column[rows] for column in columns))
    return Calls(facts.tree.ownership.of(picked), scope, len(scopes))


def gpu_known(facts: Facts, calls: Calls) -> Bool:
    """Mask of the calls whose GPU activities are in the file: not those that launched and have none."""
    tree = facts.tree
    if not tree.launches.size:
        whole: Bool = calls.ownership.spans.thread == NONE
        return whole
    launched = calls.ownership.launches.sums(tree.api[tree.launches] != Api.MEMSET)[0]
    known: Bool = (launched == 0) | (calls.ownership.gpu.sums()[0] > 0)
    return known


def _rank(scope: ScopeFacts) -> int:
    """Of spans as long as each other a step is around an annotation."""
    return ("whole", "step", "annotation", "framework", "module").index(scope.scope.kind)
