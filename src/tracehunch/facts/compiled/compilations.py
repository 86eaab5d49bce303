"""The compilations in a trace: which code, for the how manieth time, when, and what ran of it afterwards."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.facts.compiled.rows import FRAMES, annotated, is_region
from tracehunch.facts.compiler import innermost, is_compiler
from tracehunch.trace.model import Cat, Int64
from tracehunch.tree import NONE, Tree
from tracehunch.tree.names import names_that

_ID: Final = re.compile(r"compile_id=(?:\d+/)?(\d+)/(\d+)")
_REGION_ID: Final = re.compile(r"Torch-Compiled Region: (?:\d+/)?(\d+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation. ``code`` numbers the function, ``version`` how often it was compiled before.

    Both are NONE where the file has no ids.
    """

    row: int
    code: int
    version: int

    @property
    def label(self) -> str:
        """As PyTorch writes it, ``0/5``; empty without ids."""
        return "" if self.code == NONE else f"{self.code}/{self.version}"


def compilations(tree: Tree) -> list[Compilation]:
    """Find the compilations, in order of time."""
    trace = tree.trace
    rows = annotated(tree, FRAMES.__contains__)
    if not rows.size:
        return []
    above = tree.parent[rows].astype(np.int64)
    inside = np.zeros(rows.size, dtype=bool)
    known = above != NONE
    inside[known] = innermost(tree, above[known], FRAMES.__contains__) != NONE
    rows = rows[~inside]
    rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
    ids = _ids(tree, rows)
    return [Compilation(row, *ids[row]) for row in rows.tolist()]


def _ids(tree: Tree, rows: Int64) -> dict[int, tuple[int, int]]:
    """Ids by compilation: those that its phases name, else that of the region that runs next."""
    trace = tree.trace
    named = names_that(trace, lambda name: _ID.search(name) is not None)
    phases = np.flatnonzero((trace.cat == Cat.USER_ANNOTATION) & named[trace.name])
    outer = innermost(tree, phases, lambda name: name in FRAMES) if phases.size else phases
    found: dict[int, tuple[int, int]] = {}
    for phase, row in zip(phases.tolist(), _outermost(tree, outer).tolist(), strict=True):
        match = _ID.search(trace.name_of(phase))
        if row != NONE and match is not None:
            found.setdefault(row, (int(match[1]), int(match[2])))
    regions = annotated(tree, is_region)
    for row in rows.tolist():
        if row not in found:
            found[row] = _next_region(tree, regions, row)
    return found


def _outermost(tree: Tree, rows: Int64) -> Int64:
    """Climb from frames of a compilation to the outermost one around them."""
    named = names_that(tree.trace, FRAMES.__contains__)
    current = rows.copy()
    while True:
        above = np.where(current == NONE, NONE, tree.parent[current]).astype(np.int64)
        rises = (above != NONE) & named[tree.trace.name[above]]
        if not rises.any():
            return current
        current[rises] = above[rises]


def _next_region(tree: Tree, regions: Int64, row: int) -> tuple[int, int]:
    trace = tree.trace
    after = (trace.thread[regions] == trace.thread[row]) & (trace.start_ns[regions] >= trace.start_ns[row])
    later = regions[after]
    if not later.size:
        return NONE, NONE
    return region_id(trace.name_of(int(later[np.argmin(trace.start_ns[later])])))


def region_id(name: str) -> tuple[int, int]:
    """Return code and version of a region by its name; NONE where it has no ids."""
    match = _REGION_ID.match(name)
    return (NONE, NONE) if match is None else (int(match[1]), int(match[2]))


def compiling(tree: Tree) -> Int64:
    """Find all rows of the compiler at work, also those inside compiled regions."""
    return annotated(tree, is_compiler)
