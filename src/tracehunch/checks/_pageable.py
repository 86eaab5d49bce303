"""Copies between host and device: the kind of host memory, and the calls that saw them through."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import gpu_positions, uses
from tracehunch.facts.counts import waits_of
from tracehunch.facts.model import Facts, KernelUse
from tracehunch.trace.model import ABSENT, Int64
from tracehunch.tree import NONE, Link, Tree

LARGE_BYTES: Final = 64 << 10
"""Up to so much the driver copies aside and returns at once: the kind of memory hardly matters."""
_MEMORY: Final = {"host to device": "from", "device to host": "to"}


@dataclass(frozen=True, slots=True)
class HostCopies:
    """GPU rows in ascending order, and what the trace says of each."""

    rows: Int64
    n_bytes: Int64  # ABSENT where not recorded
    to_device: NDArray[np.bool_]
    pageable: NDArray[np.bool_]
    pinned: NDArray[np.bool_]  # neither where the name does not tell, as on AMD

    def of(self, wanted: NDArray[np.bool_]) -> "HostCopies":
        """Return some of them."""
        return HostCopies(
            self.rows[wanted],
            self.n_bytes[wanted],
            self.to_device[wanted],
            self.pageable[wanted],
            self.pinned[wanted],
        )

    @property
    def large(self) -> NDArray[np.bool_]:
        """Those of enough bytes for the kind of memory to matter, or of a size that is not known."""
        large: NDArray[np.bool_] = (self.n_bytes > LARGE_BYTES) | (self.n_bytes == ABSENT)
        return large


def host_copies(facts: Facts) -> HostCopies:
    """Find the copies between host and device whose launch is recorded."""
    chosen = [use for use in uses(facts) if _field(use, "direction") in _MEMORY]
    rows = np.array([row for use in chosen for row in use.rows], dtype=np.int64)
    kind = np.repeat(np.arange(len(chosen)), [len(use.rows) for use in chosen]).astype(np.int64)
    order = np.argsort(rows)
    order = order[facts.tree.link[rows[order]] == Link.LINKED]
    rows, kind = rows[order], kind[order]
    memory = np.array([_field(use, _MEMORY[_field(use, "direction")]) for use in chosen], dtype=object)[kind]
    to_device = np.array([_field(use, "direction") == "host to device" for use in chosen], dtype=bool)[kind]
    n_bytes = facts.tree.trace.gpu.bytes[gpu_positions(facts, rows)]
    return HostCopies(rows, n_bytes, to_device, memory == "pageable", memory == "pinned")


def held_up_by(tree: Tree, rows: Int64) -> Int64:
    """Host rows in which the host saw copies through: their launches, and waits in the same op."""
    launches = tree.launch[rows].astype(np.int64)
    waits, ops = waits_of(tree), tree.op[launches]
    return np.union1d(launches, waits[np.isin(tree.op[waits], ops[ops != NONE])])


def _field(use: KernelUse, name: str) -> str:
    return dict(use.identity.fields).get(name, "")
