"""Whether a finding rests on things of the kind that a key counts, so that it can be why there are more."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from tracehunch.facts.activities import COPY_OPS
from tracehunch.facts.model import Facts, KernelUse
from tracehunch.kernels import is_copy_kernel
from tracehunch.trace.model import GPU_CATS, Cat, Int64
from tracehunch.tree.names import names_that
from tracehunch.verdict import Finding


def counts_toward(key: str, finding: Finding, facts: Facts) -> bool:
    """Tell whether some of a finding's evidence is counted by a key; true of keys that count nothing."""
    amount = amount_of(key, finding, facts)
    return amount is None or amount > 0


def amount_of(key: str, finding: Finding, facts: Facts) -> int | None:
    """Return how much of a finding's evidence a key counts; None of keys that count nothing."""
    count = _COUNTED.get(key)
    if count is None:
        return None
    return count(np.flatnonzero(np.isin(facts.tree.trace.event, finding.evidence)), facts)


def _activities(rows: Int64, facts: Facts) -> int:
    return int(np.isin(facts.tree.trace.cat[rows], GPU_CATS).sum())


def _kernels(rows: Int64, facts: Facts) -> int:
    return int((facts.tree.trace.cat[rows] == Cat.KERNEL).sum())


def _memcpys(*directions: str) -> Callable[[Int64, Facts], int]:
    """Count memcpys, in any direction or in those named."""
    begins = tuple(f"Memcpy {direction} " for direction in directions) or ("",)

    def count(rows: Int64, facts: Facts) -> int:
        trace = facts.tree.trace
        named = names_that(trace, lambda name: name.startswith(begins))
        return int(((trace.cat[rows] == Cat.MEMCPY) & named[trace.name[rows]]).sum())

    return count


def _copy_kernels(rows: Int64, facts: Facts) -> int:
    uses = [use for scope in facts.scopes if scope.scope.kind == "whole" for use in scope.kernels]
    copying = [np.asarray(use.rows, dtype=np.int64) for use in uses if _copies(use)]
    return int(np.isin(rows, np.concatenate(copying)).sum()) if copying else 0


def _copies(use: KernelUse) -> bool:
    return use.kind == "kernel" and (is_copy_kernel(use.identity) or use.op in COPY_OPS)


def _leaf_ops(rows: Int64, facts: Facts) -> int:
    tree = facts.tree
    return int(((tree.trace.cat[rows] == Cat.CPU_OP) & (tree.n_children[rows] == 0)).sum())


_COUNTED: Final[Mapping[str, Callable[[Int64, Facts], int]]] = {
    "gpu_activities": _activities,
    "launches": _activities,
    "kernels": _kernels,
    "copies": _memcpys(),
    "copies.dtod": _memcpys("DtoD"),
    "copies.htod": _memcpys("HtoD"),
    "copies.dtoh": _memcpys("DtoH"),
    "copy_kernels": _copy_kernels,
    "any_copies": lambda rows, facts: _memcpys()(rows, facts) + _copy_kernels(rows, facts),
    "leaf_ops": _leaf_ops,
}
"""Key -> how many of some rows it counts."""
