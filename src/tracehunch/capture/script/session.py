"""Watch a program from within its process, record its steps, and get out of its way.

All of it is called by the program, in the middle of its work: nothing is raised into it, and a call that
comes while another thread is at work with the profiler is let go.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.held import held
from tracehunch.capture.recorder import Recorder, Recording
from tracehunch.capture.script import gpu
from tracehunch.capture.script.arrival import when_imported
from tracehunch.capture.script.deadline import Deadline
from tracehunch.capture.script.departure import Departure
from tracehunch.capture.script.finder import KINDS, Finder, Kind, Move
from tracehunch.capture.script.memory import LIMIT_BYTES, Growth
from tracehunch.capture.script.outcome import Outcome, explained, recorded
from tracehunch.capture.script.watches import Watches
from tracehunch.capture.torch_env import QUIET
from tracehunch.errors import CaptureError
from tracehunch.units import size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SECONDS_STEPS: Final = 60.0
SECONDS_WHOLE: Final = 5.0
"""How long is recorded at most: a step of a large model takes its time with few events in it."""

TOO_LARGE: Final = f"cut when it took {size(LIMIT_BYTES)} of memory"
_OWN_PROFILER: Final = "the script has a profiler of its own, which goes first"


class Session:
    """Records a program that runs in this process; ``begin()`` before it, ``finish()`` after it.

    ``recording`` says what to record: its ``skip`` counts the steps that pass before. ``max_seconds`` is how
    long recording goes on at most, None for what is usual. ``only`` is the kind of steps that is wanted.
    ``say`` is told, in a line, what the user should know while the program goes on.
    """

    def __init__(
        self,
        path: Path,
        recording: Recording,
        *,
        max_seconds: float | None,
        only: Kind | None,
        say: Callable[[str], None],
    ) -> None:
        self.told = False  # the outcome, to the user
        self._path = path
        self._recording = recording
        self._max_seconds = max_seconds
        self._only = only
        self._say = say
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._worker = 0  # the thread that is at work with the profiler
        self._owners: dict[Kind, int] = {}
        self._over = False
        self._on_gpu = False
        self._torch: Any = None
        self._finder = Finder(recording.skip, only)
        self._recorder: Recorder | None = None
        self._deadline: Deadline | None = None
        self._growth: Growth | None = None
        self._departure: Departure | None = None
        self._watches: Watches | None = None
        self._outcome = Outcome("whole")

    @property
    def elsewhere(self) -> bool:
        """Whether this is a forked copy of the process that is recorded."""
        return os.getpid() != self._pid

    def begin(self) -> None:
        """Wait for torch to be imported by whoever needs it."""
        os.environ.setdefault("KINETO_LOG_LEVEL", QUIET)  # read when torch is loaded
        self._departure = Departure(self._depart)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._in_child)
        when_imported("torch", self._torch_came)

    def finish(self) -> Outcome:
        """End the recording, write what there is, put back everything."""
        if not self.elsewhere:
            with held(), self._lock, self._at_work():
                self._settle()
                self._over = True
            self._tidy()
        self._outcome = explained(self._outcome, self._finder, self._recording, self._torch is not None)
        return self._outcome

    def _torch_came(self, torch: Any) -> None:
        if self.elsewhere or self._over:
            return
        self._torch = torch
        kinds = [kind for kind in KINDS if self._only in {kind, None}]
        self._watches = Watches(torch, kinds, self._forward_ended, self._optimizer_ended, self._rival_comes)
        if gpu.is_harmless(torch):
            self._start_whole()
        else:
            gpu.when_first_used(torch, self._gpu_came)

    def _gpu_came(self) -> None:
        self._on_gpu = True
        self._start_whole()

    def _start_whole(self) -> None:
        with self._free() as free:
            if free and self._finder.kind == "whole" and self._recorder is None:
                self._start()

    def _forward_ended(self, who: int) -> None:
        self._ended("forward", who)

    def _optimizer_ended(self, who: int) -> None:
        self._ended("optimizer", who)

    def _ended(self, kind: Kind, who: int) -> None:
        """Something that may be a step has ended: in one thread, the first that made one of the kind."""
        here = threading.get_ident()
        if self._over or self._owners.setdefault(kind, here) != here or gpu.is_capturing(self._torch):
            return
        with self._free() as free:
            if free:
                before = self._finder.kind
                move = self._finder.optimizer(who) if kind == "optimizer" else self._finder.forward(who)
                self._move(move, before)

    def _move(self, move: Move, before: Kind) -> None:
        """Do what the finder says; ``before`` is the kind of what is being recorded."""
        if move in {Move.START, Move.AGAIN}:
            self._stop(before)  # and written: Kineto cannot once another recording has begun
        if move is Move.START:
            self._start()
        elif move is Move.STEP and self._recorder is not None:
            self._recorder.step()
            self._go_on(self._recorder)

    def _start(self) -> None:
        """Start to record what the finder says."""
        on_gpu = self._on_gpu or bool(self._torch.cuda.is_initialized())
        whole = self._finder.kind == "whole"
        wanted = replace(self._recording, skip=0, from_start=whole, cuda=on_gpu, all_threads=True)
        self._growth = Growth(
            self._torch
        )  # now: it takes a while, as a thread does, and must not be recorded
        self._deadline = Deadline(self._time_is_up, self._growth.exceeds_limit)
        recorder = Recorder(self._path, wanted)
        try:
            recorder.start()
        except CaptureError as failure:
            self._outcome = replace(self._outcome, remark=str(failure))
            self._over = True
            self._forget_deadline()
            return
        self._recorder = recorder
        self._go_on(recorder)

    def _go_on(self, recorder: Recorder) -> None:
        """Settle a recorder that is done; limit the time of one that has begun to record."""
        if recorder.detached:
            self._settle()
            self._tell()
        elif recorder.is_recording and self._deadline is not None:
            self._deadline.begin(self._limit())

    def _limit(self) -> float:
        """Return how many seconds recording may go on."""
        return self._max_seconds or (SECONDS_WHOLE if self._finder.kind == "whole" else SECONDS_STEPS)

    def _time_is_up(self) -> bool:
        """End a recording that takes too long; False if that is not possible right now."""
        if gpu.is_capturing(self._torch):
            return False
        with self._free() as free:
            if free and self._deadline is not None and self._growth is not None:
                large = self._growth.exceeds_limit()
                self._settle(TOO_LARGE if large else f"cut after {self._limit():g} s, see --max-seconds")
                self._tell()
            return free or self._over

    def _tell(self) -> None:
        """Say what is there already: a script may go on for a week."""
        if self._outcome.trace is not None and self._over:
            self.told = True
            self._say(f"{self._outcome.sentence}; the script goes on without the profiler")

    def _settle(self, cut: str = "") -> None:
        """Be done with what is being recorded."""
        if self._recorder is not None:
            self._stop(self._finder.kind, cut)
            self._over = self._over or self._finder.kind in {KINDS[-1], self._only}

    def _stop(self, kind: Kind, cut: str = "") -> None:
        """Stop what is being recorded, of this kind, and keep what came of it, if it is anything."""
        recorder, self._recorder = self._recorder, None
        self._forget_deadline()
        if recorder is not None:
            if self._outcome.trace is not None and not cut and not recorder.has_steps:
                recorder.discard()  # the trace that is there says more than a piece of a step
            recorder.stop()
            self._outcome = recorded(self._outcome, kind, recorder, cut)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _rival_comes(self) -> None:
        """Leave the field to a profiler that the program starts."""
        if self._worker == threading.get_ident():
            return  # it is ours
        with self._free() as free:
            if not free:
                return
            if self._finder.kind == "whole" and self._recorder is not None:
                self._recorder.discard()  # what led to its start
            self._settle(_OWN_PROFILER)
            self._over = True
            if self._outcome.trace is None:
                self._outcome = replace(self._outcome, remark=_OWN_PROFILER)

    def _depart(self) -> None:
        """Write what there is: the process is about to end without coming back."""
        outcome = self.finish()
        self._say(outcome.sentence)

    @contextmanager
    def _free(self) -> Iterator[bool]:
        """Have the profiler to oneself; False where it is over, or somebody else is at work with it."""
        if self._over or self.elsewhere:
            yield False
            return
        with held():  # before the lock: a signal's handler may want it
            free = self._lock.acquire(blocking=False)
            try:
                with self._at_work() if free else nullcontext():
                    yield free
            finally:
                if free:
                    self._lock.release()
        self._tidy()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self._worker = threading.get_ident()
        try:
            yield
        finally:
            self._worker = 0

    def _tidy(self) -> None:
        """Take off what is of no use any more."""
        settled = self._outcome.trace is not None and self._recorder is None
        if self._watches is not None and (settled or self._over):
            least = len(KINDS) if self._over else KINDS.index(self._outcome.kind) + 1
            self._watches.keep(KINDS[least:], rivals=not self._over)
        elif self._watches is not None and self._finder.kind == KINDS[-1]:
            self._watches.keep(KINDS[-1:], rivals=True)  # each module that is called would cost a little
        if self._departure is not None and (settled or self._over):
            self._departure.remove()

    def _in_child(self) -> None:
        """In a forked process: be gone."""
        self._over = True
        self._tidy()
        if self._recorder is not None:
            self._recorder.abandon()
