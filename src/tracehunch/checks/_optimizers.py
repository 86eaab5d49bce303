"""Steps of optimizers: what they launch, tensor by tensor or for many tensors at once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import launched, on_gpu
from tracehunch.checks._ancestry import called_op
from tracehunch.checks._copy_fixes import MULTIPLYING
from tracehunch.facts.model import Facts
from tracehunch.trace.model import UNKNOWN_NS, Int64
from tracehunch.tree import NONE, Api, Tree
from tracehunch.tree.names import names_that

_STEP: Final = re.compile(r"Optimizer\.step#(?P<class>.+)\.step$")
_MANY_AT_ONCE: Final = ("aten::_foreach_", "aten::_fused_", "aten::_amp_")


@dataclass(frozen=True, slots=True)
class Steps:
    """What the steps of one class of optimizer launched through ops, by time of launch.

    Rows are GPU activities; where those were not recorded, launches.
    """

    name: str  # of the class
    multiplies: bool  # its steps have matrix products, which no foreach implementation has; they are not rows
    rows: Int64
    step: Int64  # row of the annotation around each
    op: Int64  # op that was called for each
    one_tensor: NDArray[np.bool_]  # an op on one tensor, no foreach or fused one

    def only(self, chosen: NDArray[np.bool_] | Int64) -> Self:
        """Return those of some rows, by a mask or by position."""
        return replace(
            self,
            rows=self.rows[chosen],
            step=self.step[chosen],
            op=self.op[chosen],
            one_tensor=self.one_tensor[chosen],
        )


def optimizer_steps(facts: Facts) -> Sequence[Steps]:
    """Find what ran in ``Optimizer.step#...`` annotations, by class of optimizer."""
    tree = facts.tree
    trace = tree.trace
    steps = {code: match["class"] for code, name in enumerate(trace.names) if (match := _STEP.match(name))}
    if not steps:
        return ()
    is_step = np.zeros(len(trace.names), dtype=bool)
    is_step[list(steps)] = True
    rows, host = _launched(facts)
    step = _step_around(tree, host, is_step)
    rows, step = rows[step != NONE], step[step != NONE]
    op = called_op(tree, rows)
    products = names_that(trace, MULTIPLYING.__contains__)[trace.name[op]] & (op != NONE)
    multiplying = {steps[code] for code in np.unique(trace.name[step[products]]).tolist()}
    aten = names_that(trace, lambda name: name.startswith("aten::"))
    inside = (op != NONE) & aten[trace.name[op]] & ~products
    rows, step, op = rows[inside], step[inside], op[inside]
    at_once = names_that(trace, lambda name: name.startswith(_MANY_AT_ONCE))
    found: list[Steps] = []
    for name in sorted(set(steps.values())):
        codes = [code for code, of in steps.items() if of == name]
        mine = np.isin(trace.name[step], codes)
        if not mine.any():
            continue
        one_tensor = ~at_once[trace.name[op[mine]]]
        found.append(Steps(name, name in multiplying, rows[mine], step[mine], op[mine], one_tensor))
    return found


def _launched(facts: Facts) -> tuple[Int64, Int64]:
    """Kernels and their launches, in order of launch; without GPU activities the launches themselves."""
    tree = facts.tree
    if on_gpu(facts):
        rows = launched(facts, lambda use: use.kind == "kernel")
        host = tree.launch[rows].astype(np.int64)
    else:
        rows = host = tree.launches[tree.api[tree.launches] == Api.KERNEL]
    known = tree.trace.start_ns[host] != UNKNOWN_NS
    rows, host = rows[known], host[known]
    order = np.argsort(tree.trace.start_ns[host], kind="stable")
    return rows[order], host[order]


def _step_around(tree: Tree, rows: Int64, is_step: NDArray[np.bool_]) -> Int64:
    """For each host row the step of an optimizer around it; NONE where there is none."""
    names = tree.trace.name
    found = tree.parent[rows].astype(np.int64)
    while (rising := np.flatnonzero((found != NONE) & ~is_step[names[found]])).size:
        found[rising] = tree.parent[found[rising]]
    return found
