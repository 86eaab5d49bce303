"""One partition of the time in which a GPU had nothing to do: each piece has exactly one cause.

A device is idle where none of its activities (kernels, copies, memsets) runs, in the recorded window. Each
gap ends with an activity, and is laid to what the thread that launched it did before: where that thread was
held up while the GPU was idle, the time is that cause's; and what held it up earlier, when the GPU still
had work, is to blame for the gap that this led to later, up to the time that was lost. What is left is
ordinary host work, too slow to keep the launch queue filled (``LAUNCH``). So the pieces of a cause are what
its removal would save, and those of different causes never overlap.
"""

from typing import Final
from weakref import WeakKeyDictionary

from tracehunch.checks._idle_blame import partition
from tracehunch.checks._idle_pieces import Idle, IdleCause
from tracehunch.facts.model import Facts
from tracehunch.tree import Ownership

__all__ = ["Idle", "IdleCause", "idle_of"]

_MADE: Final[WeakKeyDictionary[Ownership, Idle]] = WeakKeyDictionary()
"""By the ownership of the tree, which lives as long as the facts do."""


def idle_of(facts: Facts) -> Idle:
    """Partition the idle time of a trace; worked out once for each."""
    known = _MADE.get(facts.tree.ownership)
    if known is None:
        known = _MADE[facts.tree.ownership] = partition(facts.tree)
    return known
