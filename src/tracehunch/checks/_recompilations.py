"""Which compilations repeat what was compiled before, and what they cost a call of their scope."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import on_gpu
from tracehunch.checks._compiled import cover_of
from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.checks._scopes import call_of, place_rows
from tracehunch.facts.compiled.compilations import Compilation, compilations, compiling
from tracehunch.facts.intervals import Cover
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64


@dataclass(frozen=True, slots=True)
class Compiled:
    """The compilations in the calls of one scope: those of code compiled before, and the first ones."""

    scope: ScopeFacts
    again: tuple[Compilation, ...]
    calls_again: Int64  # numbers of the calls, ascending
    first: tuple[Compilation, ...]
    host_us: NDArray[np.float64]  # the compiler's time in each call
    again_part: float  # of all compilations' time

    @property
    def only_once(self) -> bool:
        """Tell whether code was specialised a second time, once, in the first call: as warm-up does."""
        return self.calls_again.tolist() == [0] and len(self.again) == 1 and self.again[0].version == 1


def compiled_by_scope(facts: Facts) -> list[Compiled]:
    """Sort the compilations by scope."""
    tree = facts.tree
    found = compilations(tree)
    if not found:
        return []
    rows = np.array([one.row for one in found], dtype=np.int64)
    everything = cover_of(tree, compiling(tree))
    return [
        _in_scope(facts, scope, [one for one in found if one.row in chosen], everything)
        for scope, chosen in place_rows(facts, rows).by_scope(rows)
    ]


def saved_us(facts: Facts, compiled: Compiled) -> float:
    """Return what a call takes longer for all its compilations: idle time of the GPU; on a CPU their time."""
    if not on_gpu(facts):
        return float(compiled.host_us.mean())
    return idle_of(facts).per_call_us(compiled.scope, IdleCause.COMPILE)


def stake_words(facts: Facts) -> str:
    """Say what ``saved_us`` is."""
    return (
        "the time in which the GPU idled because the compiler was at work" if on_gpu(facts) else "that time"
    )


def idle_pieces(facts: Facts, compiled: Compiled) -> tuple[int, ...]:
    """Return the pieces of idle time that are the compiler's."""
    if not on_gpu(facts):
        return ()
    return tuple(idle_of(facts).inside(compiled.scope, IdleCause.COMPILE).tolist())


def _in_scope(facts: Facts, scope: ScopeFacts, found: list[Compilation], everything: Cover) -> Compiled:
    calls = call_of(facts, scope, np.array([one.row for one in found], dtype=np.int64)).tolist()
    # new code in one later call is a first use; in several it is made anew each time
    new_calls = {call for one, call in zip(found, calls, strict=True) if one.version <= 0 and call > 0}
    is_again = [
        one.version > 0 or (call in new_calls and len(new_calls) > 1)
        for one, call in zip(found, calls, strict=True)
    ]
    again = tuple(one for one, repeated in zip(found, is_again, strict=True) if repeated)
    first = tuple(one for one, repeated in zip(found, is_again, strict=True) if not repeated)
    start = np.array([call.start_ns for call in scope.scope.calls], dtype=np.int64)
    end = np.array([call.end_ns for call in scope.scope.calls], dtype=np.int64)
    spent = [sum(int(facts.tree.trace.dur_ns[one.row]) for one in part) for part in (again, first)]
    return Compiled(
        scope=scope,
        again=again,
        calls_again=np.unique([call for call, repeated in zip(calls, is_again, strict=True) if repeated]),
        first=first,
        host_us=(everything.until(end) - everything.until(start)) / 1e3,
        again_part=spent[0] / max(sum(spent), 1),
    )
