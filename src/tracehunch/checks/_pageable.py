"""Copies between host and device: the kind of host memory, and the calls that saw them through."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import gpu_positions, uses
from tracehunch.checks._once import once
from tracehunch.facts.counts import waits_of
from tracehunch.facts.model import Facts, KernelUse
from tracehunch.trace.model import ABSENT, Int64
from tracehunch.tree import NONE, Link
from tracehunch.tree.keys import Lookup, distinct

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

    def of(self, wanted: NDArray[np.bool_] | Int64) -> "HostCopies":
        """Return some of them, by a mask or by position."""
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


@once
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


def held_up_by(facts: Facts, rows: Int64) -> Int64:
    """Host rows in which the host saw copies through: their launches, and waits in the same op."""
    tree = facts.tree
    launches = tree.launch[rows].astype(np.int64)
    (waits, of_op), ops = _waits(facts), tree.op[launches]
    return distinct(np.concatenate([launches, waits[of_op.having(ops[ops != NONE])]]))


@once
def _waits(facts: Facts) -> tuple[Int64, Lookup]:
    """Return the waits, and which of them are in which op."""
    rows = waits_of(facts.tree)
    return rows, Lookup.of(facts.tree.op[rows])


def _field(use: KernelUse, name: str) -> str:
    return dict(use.identity.fields).get(name, "")
