"""Small programs, and what a host and a GPU with known latencies make of them: an independent truth."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.compare.critical.made import Made

LATENCY, GAP, RETURN = 4.0, 1.0, 3.0
Instruction = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Factors:
    """By what to multiply the times of one kind."""

    op: float = 1
    outside: float = 1
    launch: float = 1
    call: float = 1
    kernel: float = 1
    wait: float = 1


WHAT_IF = {
    "gpu": Factors(kernel=0),
    "launch-calls": Factors(launch=0),
    "ops": Factors(op=0),
    "outside": Factors(outside=0),
    "host": Factors(op=0, outside=0, launch=0, call=0, wait=0),
}


def program(seed: int, *, waits: bool) -> list[Instruction]:
    """Return a random one: ops, Python, launches on three streams, events, and waits."""
    rnd = random.Random(seed)  # noqa: S311  # nothing secret
    made: list[Instruction] = []
    for _ in range(rnd.randint(10, 50)):
        kind = rnd.choices(("op", "outside", "launch", "event", "wait"), (35, 7, 40, 8, 10 * waits))[0]
        numbers = {
            "op": (rnd.randint(2, 30),),
            "outside": (rnd.randint(1, 15),),
            "launch": (rnd.choice((7, 7, 7, 20, 24)), rnd.randint(3, 9), rnd.choice((2, 5, 10, 40, 90))),
            "event": rnd.choice(((7, 20), (7, 24), (20, 7), (20, 24))),
            "wait": (rnd.choice((7, 20)),),
        }
        made.append((kind, numbers[kind]))
    return made


@dataclass
class Machine:
    """Runs programs, and records them if it has where."""

    factors: Factors = Factors()
    made: Made | None = None
    events_recorded: bool = True
    now: float = 0
    free: dict[int, float] = field(default_factory=dict)
    held: dict[int, float] = field(default_factory=dict)

    def step(self, instructions: list[Instruction], number: int) -> float:
        """Run a step; return when all of its work is over."""
        begun = self.now
        runs: dict[str, Callable[..., None]] = {
            "op": self._op,
            "outside": self._outside,
            "launch": self._launch,
            "event": self._event,
            "wait": self._wait,
        }
        for kind, numbers in instructions:
            runs[kind](*numbers)
        if self.made:
            self.made.step(number, begun, self.now)
        return max(self.now, *self.free.values(), 0)

    def _op(self, took: int) -> None:
        begun, self.now = self.now, self.now + took * self.factors.op
        if self.made:
            self.made.op("aten::x", begun, self.now)

    def _outside(self, took: int) -> None:
        self.now += took * self.factors.outside

    def _launch(self, stream: int, took: int, kernel: int) -> None:
        begun, self.now = self.now, self.now + took * self.factors.launch
        ready = (self.now + LATENCY, self.free.get(stream, 0) + GAP, self.held.pop(stream, 0))
        start = max(ready) if stream in self.free else max(ready[0], ready[2])
        self.free[stream] = start + kernel * self.factors.kernel
        if self.made:
            self.made.launch(begun, self.now, "kernel", start, self.free[stream], stream=stream)

    def _event(self, of: int, waits: int) -> None:
        begun, self.now = self.now, self.now + 2 * self.factors.call
        if of in self.free:
            self.held[waits] = max(self.held.get(waits, 0), self.free[of] + GAP)
        if not self.made:
            return
        record = self.made.call("cudaEventRecord", begun, begun + 1)
        wait = self.made.call("cudaStreamWaitEvent", begun + 1, self.now)
        if self.events_recorded:
            self.made.sync(
                "Stream Wait Event",
                begun + 1,
                self.now,
                stream=waits,
                correlation=wait,
                wait_on_stream=of,
                wait_on_cuda_event_record_corr_id=record,
            )

    def _wait(self, stream: int) -> None:
        begun, self.now = (
            self.now,
            max(self.now, self.free.get(stream, 0)) + RETURN * self.factors.wait,
        )
        if not self.made:
            return
        call = self.made.call("cudaStreamSynchronize", begun, self.now)
        if self.events_recorded:
            self.made.sync("Stream Sync", begun, self.now, stream=stream, correlation=call)
