"""The module that launches a kernel, where modules were recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehunch.report.html.modules import modules_of
from tracehunch.trace.model import UNKNOWN_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.facts.model import KernelUse
    from tracehunch.tree import Tree


def module_names(tree: Tree, uses: Sequence[KernelUse]) -> list[str]:
    """Return for each kernel the path of the module that launches it; "several (3)" where they differ."""
    counts = [len(use.rows) for use in uses]
    rows = np.array([row for use in uses for row in use.rows], dtype=np.int64)
    numbers, names = modules_of(tree, rows)
    found = np.split(numbers, np.cumsum(counts)[:-1]) if counts else []
    return [_one(set(part.tolist()), names) for part in found]


def by_module(tree: Tree, uses: Sequence[KernelUse], n_calls: int) -> list[tuple[str, float, float, int]]:
    """Return module, microseconds and runs a call (means over the calls), and distinct kernels; "" for none.

    The most time first; empty where no modules were recorded.
    """
    counts = [len(use.rows) for use in uses]
    rows = np.array([row for use in uses for row in use.rows], dtype=np.int64)
    numbers, names = modules_of(tree, rows)
    if len(names) == 1:
        return []
    dur = tree.trace.dur_ns[rows]
    times = np.bincount(numbers, weights=np.where(dur == UNKNOWN_NS, 0, dur), minlength=len(names)) / 1e3
    runs = np.bincount(numbers, minlength=len(names))
    pairs = np.unique(np.column_stack([numbers, np.repeat(np.arange(len(uses)), counts)]), axis=0)
    kernels = np.bincount(pairs[:, 0], minlength=len(names))
    order = np.argsort(-times, kind="stable").tolist()
    return [
        (names[at], round(float(times[at]) / n_calls, 3), round(int(runs[at]) / n_calls, 2), int(kernels[at]))
        for at in order
        if runs[at]
    ]


def _one(numbers: set[int], names: Sequence[str]) -> str:
    if len(numbers) > 1:
        return f"several ({len(numbers)})"
    return names[numbers.pop()] if numbers else ""
