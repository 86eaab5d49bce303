"""The Tree: how the rows of a trace hang together, and the scopes that own them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Int8, Int32, Int64, Notice, Trace
from tracehunch.tree.frames import Frames
from tracehunch.tree.nesting import NONE
from tracehunch.tree.ownership import Ownership
from tracehunch.tree.window import Window
from tracehunch.units import plural

Bool = NDArray[np.bool_]
ScopeKind = Literal["annotation", "framework", "step", "module", "whole"]


class Link:
    """How a GPU activity hangs together with a launch (values of ``Tree.link``)."""

    LINKED = 0
    OUTSIDE_WINDOW = 1  # a correlation that no launch in the file has: launched before or after the recording
    UNLINKED = 2  # correlation 0, negative or absent
    AMBIGUOUS = 3  # several launches carry its correlation and nothing settles which


@dataclass(frozen=True, slots=True)
class Call:
    """One entry of a scope: its own row, and what it owns. Rows are ascending."""

    row: int  # NONE for the whole trace
    thread: int  # NONE for the whole trace
    start_ns: int
    end_ns: int
    launches: Int64  # launch rows owned, all threads
    own_launches: Int64  # on the scope's own thread
    gpu: Int64  # GPU rows owned
    own_gpu: Int64
    ops: Int64  # cpu_op rows on its own thread inside it


@dataclass(frozen=True, slots=True)
class Scope:
    """All calls of one annotation, module, the profiler steps together, or the whole trace.

    A call inside a call of the same name (recursion) is part of the outer one and is not counted again.
    """

    name: str
    kind: ScopeKind
    calls: Sequence[Call]  # made when asked for
    first_call: int = 0
    """Where this scope's calls begin in ``Tree.ownership``."""


@dataclass(frozen=True, slots=True)
class Tree:
    """How the rows of a trace hang together. Columns have one entry per row of the trace."""

    trace: Trace
    parent: Int32  # innermost op, annotation or call around a host row on its thread; NONE at the top
    op: Int32  # innermost cpu_op around (or being) a row; for GPU rows that of the launch; NONE if none
    launch: Int32  # GPU row -> its launch row; NONE
    link: Int8  # GPU rows: Link.*; 0 elsewhere
    n_children: Int32  # children among cpu_ops (leaf ops have 0)
    autograd_threads: frozenset[int]  # threads that run autograd's engine
    backward_of: Mapping[int, int]  # backward node row -> forward op row, by sequence number
    notices: tuple[Notice, ...] = ()
    scopes: tuple[Scope, ...] = field(default=())
    api: Int8 = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    """What a runtime or driver row does (``apis.Api``); ``Api.OTHER`` elsewhere."""
    launches: Int64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Rows of the calls that put work on the GPU, ascending."""
    ops: Int64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Rows of the ops, ascending."""
    engine: Bool = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """Rows that belong to autograd's engine: on its own threads, or inside its rows on another."""
    crossing: Int64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Rows that cross another on their thread in place of nesting."""
    skewed: bool = False
    """Whether GPU activities start before their launches: delays between CPU and GPU mean nothing."""
    ownership: Ownership = field(default_factory=Ownership.empty)
    """The calls of all scopes, and which launches, GPU activities and ops each of them owns."""
    window: Window = field(default_factory=Window)
    """The time the file covers."""
    frames: Frames | None = None
    """Python frames around host rows, for ``source_line``."""

    def __repr__(self) -> str:
        return f"<Tree of {self.trace.label}: {plural(len(self.scopes), 'scope')}>"

    def ancestors(self, row: int) -> list[int]:
        """Rows around a host row, innermost first."""
        found = []
        while (row := int(self.parent[row])) != NONE:
            found.append(row)
        return found

    def gpu_of_launch(self, launch_row: int) -> Int64:
        """GPU rows of one launch (several for a CUDA graph)."""
        return np.flatnonzero(self.launch == launch_row)
