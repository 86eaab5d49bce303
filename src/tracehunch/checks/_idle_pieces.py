"""Pieces of idle time, and how they are shared out among the calls of scopes."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tracehunch.facts.intervals import Cover
from tracehunch.facts.model import ScopeFacts
from tracehunch.trace.model import Int8, Int64
from tracehunch.tree import NONE
from tracehunch.tree.keys import distinct, groups_of, packed
from tracehunch.tree.ownership import Spans as Calls
from tracehunch.tree.timeline import expand


class IdleCause(IntEnum):
    """Why a GPU had nothing to do."""

    PROFILER = 0  # the profiler's own work held the thread up
    COMPILE = 1  # torch.compile at work (Dynamo, Inductor, Triton), with its benchmark runs
    FIRST_USE = 2  # loading code and setting up a library, in the first call of an op or launch
    ALLOCATION = 3  # cudaMalloc, cudaFree and their like
    LIBRARY = 4  # an op computed on the host, or a library planned, with nothing recorded inside
    STALL = 5  # host code outside PyTorch
    COPY = 6  # the host was held in a large copy from or to pageable memory
    SYNC = 7  # the host waited for the GPU, which left nothing in the queue
    LAUNCH = 8  # an ordinary chain of small ops and launches, slower than the GPU
    DEVICE = 9  # launched in time: what the GPU needs between two activities, or waits for another stream
    UNKNOWN = 10  # the launch, or what its thread did before, was not recorded


@dataclass(frozen=True)
class Idle:
    """The pieces, by device and time; one entry a piece, times in nanoseconds by the host's clock."""

    device: Int64
    start_ns: Int64
    end_ns: Int64
    cause: Int8  # IdleCause
    host_row: Int64  # row of the host that is to blame (the launch, the wait, the allocation ...); NONE
    next_row: Int64  # GPU row that the gap ended with; NONE at the end of the window
    thread: Int64  # thread that launched it; NONE where unknown
    process: Int64
    engine: NDArray[np.bool_]  # launched by autograd's engine
    calls: Calls  # of all scopes, to share the time out among
    window: tuple[int, int]

    def __len__(self) -> int:
        return self.start_ns.size

    @cached_property
    def length_us(self) -> NDArray[np.float64]:
        """Length of each piece in microseconds."""
        return (self.end_ns - self.start_ns) / 1e3

    @cached_property
    def n_devices(self) -> int:
        """How many GPUs were idle at times."""
        return distinct(self.device).size

    def of(self, *causes: IdleCause) -> Int64:
        """Positions of the pieces of some causes; of all if none is given."""
        return np.flatnonzero(self._is_due_to(*causes)[self.cause])

    def total_us(self, *causes: IdleCause) -> float:
        """Idle time of some causes (all if none), summed over devices."""
        return float(self.length_us[self.of(*causes)].sum())

    def by_call_us(self, scope: ScopeFacts, *causes: IdleCause) -> NDArray[np.float64]:
        """Idle time of some causes (all if none) inside each call of a scope.

        That is while the call lasts on the host, before activities that it, or autograd for it, launched;
        where a program uses several devices, their mean.
        """
        chosen = list(causes or IdleCause)
        found: NDArray[np.float64] = self._by_call[_calls(scope)][:, chosen].sum(axis=1) / 1e3
        return found

    def per_call_us(self, scope: ScopeFacts, *causes: IdleCause) -> float:
        """Mean of ``by_call_us`` over the calls of a scope."""
        return float(self.by_call_us(scope, *causes).mean())

    def wall_us(self, scope: ScopeFacts) -> NDArray[np.float64]:
        """How long each call of a scope lasted on the host."""
        mine = _calls(scope)
        return (self.calls.end_ns[mine] - self.calls.start_ns[mine]) / 1e3

    def within_us(self, scope: ScopeFacts, pieces: Int64) -> NDArray[np.float64]:
        """How much of each of some pieces lies inside calls of a scope, with the rules of ``by_call_us``."""
        mine = _calls(scope)
        inside = np.zeros(pieces.size)
        for thread in distinct(self.calls.thread[mine]).tolist():
            calls = np.flatnonzero(self.calls.thread[mine] == thread) + mine.start
            belongs = self._belongs(pieces, int(calls[0]))
            cover = Cover(self.calls.start_ns[calls], self.calls.end_ns[calls])
            chosen = pieces[belongs]
            inside[belongs] += (cover.until(self.end_ns[chosen]) - cover.until(self.start_ns[chosen])) / 1e3
        return inside

    def inside(self, scope: ScopeFacts, *causes: IdleCause) -> Int64:
        """Positions of the pieces of some causes (all if none) that lie inside its calls, if only in part."""
        pieces = self.near(scope)
        pieces = pieces[self._is_due_to(*causes)[self.cause[pieces]]]
        return pieces[self.within_us(scope, pieces) > 0]

    def near(self, scope: ScopeFacts) -> Int64:
        """Positions of the pieces that overlap calls of a scope, whoever launched what ended them."""
        mine, found = _calls(scope), [self.device[:0]]
        start, end = self.calls.start_ns[mine], self.calls.end_ns[mine]
        for device in self._devices:
            first = np.searchsorted(self.end_ns[device], start, "right")
            last = np.maximum(np.searchsorted(self.start_ns[device], end, "left"), first)
            found.append(expand(first, last)[1] + device.start)
        return distinct(np.concatenate(found))

    def before(self, gpu_rows: Int64, *causes: IdleCause) -> Int64:
        """Positions of the pieces of some causes (all if none) in gaps that these GPU activities ended."""
        pieces = self.of(*causes)
        return pieces[np.isin(self.next_row[pieces], gpu_rows)]

    @staticmethod
    def _is_due_to(*causes: IdleCause) -> NDArray[np.bool_]:
        """Table of the causes that are wanted, all if none is given."""
        wanted = np.zeros(len(IdleCause), dtype=bool)
        wanted[list(causes or IdleCause)] = True
        return wanted

    @cached_property
    def _devices(self) -> list[slice]:
        """Where the pieces of each device are."""
        bounds = np.flatnonzero(np.diff(self.device, prepend=-1, append=-1)).tolist()
        return [slice(first, last) for first, last in pairwise(bounds)]

    def _belongs(self, pieces: Int64, call: int) -> NDArray[np.bool_]:
        """Which pieces may be a call's: those of its own thread, and of autograd's in its process."""
        if self.calls.thread[call] == NONE:
            return np.ones(pieces.size, dtype=bool)
        own = self.thread[pieces] == self.calls.thread[call]
        belongs: NDArray[np.bool_] = own | (
            self.engine[pieces] & (self.process[pieces] == self.calls.process[call])
        )
        return belongs

    @cached_property
    def _by_call(self) -> NDArray[np.float64]:
        """(calls, causes) nanoseconds, the mean over devices."""
        found = np.zeros((len(self.calls), len(IdleCause)))
        alike = groups_of(packed(self.device, self.cause))
        for calls in groups_of(self.calls.thread):
            belongs = self._belongs(np.arange(len(self)), int(calls[0]))
            for group in alike:
                chosen = group[belongs[group]]
                if not chosen.size:
                    continue
                cover = Cover(self.start_ns[chosen], self.end_ns[chosen])
                inside = cover.until(self.calls.end_ns[calls]) - cover.until(self.calls.start_ns[calls])
                found[calls, self.cause[group[0]]] += inside
        return found / max(self.n_devices, 1)


def _calls(scope: ScopeFacts) -> slice:
    return slice(scope.scope.first_call, scope.scope.first_call + len(scope.scope.calls))
