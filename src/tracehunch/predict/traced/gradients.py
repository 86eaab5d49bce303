"""Whether a call of SDPA keeps what a backward needs: what a trace tells of requires_grad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehunch.predict.traced.recorded import SDPA, keeps_log_sum_exp
from tracehunch.trace.model import ABSENT
from tracehunch.tree import NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a call: its outermost op, the innermost SDPA, and a backend's op inside (or NONE)."""

    call: int
    asked: int
    backend: int


def linked_calls(tree: Tree, owners: Callable[[Int64], Int64]) -> frozenset[int]:
    """Return the calls that a backward links back to; `owners` finds the call that a row is in."""
    forward = np.fromiter(tree.backward_of.values(), dtype=np.int64, count=len(tree.backward_of))
    return frozenset(owners(forward).tolist()) - {NONE}


def needs_gradient(tree: Tree, rows: Rows, args: Mapping[str, Any], linked: frozenset[int]) -> bool | None:
    """Tell whether q, k or v of a call needs a gradient; None where the trace does not.

    `args` are those of the backend's op, or of the innermost SDPA where there is none.
    A backend that says whether it kept the log-sum-exp is certain. Else a backward that links back to the
    call shows it; and a call of the program without a sequence number was made with gradients off.
    """
    trace = tree.trace
    op = rows.asked if rows.backend == NONE else rows.backend
    kept = keeps_log_sum_exp(trace.name_of(op), args)
    if kept is not None or rows.call in linked:
        return kept is not False
    off = trace.name_of(rows.call) == SDPA and trace.sequence[rows.call] == ABSENT
    return False if off else None
