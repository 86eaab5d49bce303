"""One partition of the time in which a GPU had nothing to do: each piece has exactly one cause.

A device is idle where none of its activities (kernels, copies, memsets) runs, in the recorded window. Each
gap ends with an activity, and is laid to what the thread that launched it did before: where that thread was
held up while the GPU was idle, the time is that cause's; and what held it up earlier, when the GPU still
had work, is to blame for the gap that this led to later, up to the time that was lost. What is left is
ordinary host work, too slow to keep the launch queue filled (``LAUNCH``). So the pieces of a cause are what
its removal would save, and those of different causes never overlap.
"""

from tracehunch.checks._idle_blame import partition
from tracehunch.checks._idle_pieces import Idle, IdleCause
from tracehunch.checks._once import once
from tracehunch.facts.model import Facts

__all__ = ["Idle", "IdleCause", "idle_of"]


@once
def idle_of(facts: Facts) -> Idle:
    """Partition the idle time of a trace; worked out once for each."""
    return partition(facts.tree)
