"""Calls of ops in traces of some 30 models, recorded without a GPU, and what each ran on an H200.

    python benchmarks/calls_in_models.py [-v]       # calls right by op, and how far off the times are

Each row of `calls_in_models_h200` is one call as a program's recording has it, and the activities of such
calls
in the trace of the same program, with the op that launched each and the median of their times.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehunch.predict.environment import environment
from tracehunch.predict.ops import Tensor
from tracehunch.predict.ops.call import steps_of
from tracehunch.predict.program.calls import OpCall
from tracehunch.predict.program.one_call import guess_call
from tracehunch.predict.program.transfers import crosses, transfer_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.predict.ops.steps import Step

DATA = Path(__file__).parent.parent / "tests" / "data" / "truth" / "calls_in_models_h200.jsonl.gz"
ENV = environment("h200", "2.11", 91900)
KINDS = ("kernels", "copies", "memsets")
Counts = dict[str, tuple[int, int, int]]


@dataclass(frozen=True)
class Measured:
    """A call, its activities (op, name, us), and how often such calls ran."""

    call: OpCall
    activities: tuple[tuple[str, str, float], ...]
    times: int

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The call's tensors."""
        return self.call.tensors

    @property
    def ran(self) -> tuple[tuple[str, float], ...]:
        """Names and microseconds."""
        return tuple((name, us) for _, name, us in self.activities)

    @property
    def us(self) -> float:
        """Microseconds of all activities."""
        return sum(us for _, _, us in self.activities)

    @cached_property
    def steps(self) -> Sequence[Step]:
        """The launches that are expected."""
        call = self.call
        if crosses(call):
            return transfer_steps(call)
        return steps_of(call.op, call.tensors, call.options, ENV, call.outputs)

    @property
    def counts(self) -> Counts:
        """Kernels, copies and memsets by the op that launched them."""
        found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for op, name, _ in self.activities:
            found[op][1 if name.startswith("Memcpy") else 2 if name.startswith("Memset") else 0] += 1
        return {op: (one[0], one[1], one[2]) for op, one in found.items()}

    @property
    def predicted(self) -> Counts | None:
        """The same as it is guessed; None where it cannot be told."""
        guess = guess_call(self.call, ENV)
        if not guess.told:
            return None
        found: Counter[tuple[str, int]] = Counter()
        for part in guess.parts:
            made = part.activities
            for at, number in enumerate((len(made.kernels or ()), len(made.copies or ()), made.memsets or 0)):
                found[part.op, at] += number
        ops = {op for (op, _), number in found.items() if number}
        return {op: (found[op, 0], found[op, 1], found[op, 2]) for op in ops}


def in_models() -> Iterator[Measured]:
    """Yield all rows."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            op, tensors, devices, options, outputs, output_devices, activities, times = json.loads(line)
            call = OpCall(
                op,
                tensors=tuple(_tensor(*one) for one in tensors),
                devices=tuple(devices),
                options=_plain(options),
                outputs=tuple(_tensor(*one) for one in outputs),
                output_devices=tuple(output_devices),
            )
            yield Measured(call, tuple((of, name, us) for of, name, us in activities), times)


def _tensor(shape: Sequence[int], dtype: str, strides: Sequence[int], offset: int = 0) -> Tensor:
    return Tensor(tuple(shape), dtype, tuple(strides), offset)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return tuple(_plain(one) for one in value) if isinstance(value, list) else value


def main() -> None:
    """Print by op how many calls are told exactly, how many not at all, and predicted over measured time."""
    right: dict[str, Counter[str]] = defaultdict(Counter)
    time: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for one in in_models():
        said, name = one.predicted, one.call.op
        key = "untold" if said is None else "right" if said == one.counts else "wrong"
        for of in (name, "all"):
            right[of][key] += one.times
            found = guess_call(one.call, ENV).activities.time
            if found is not None:
                time[of][0] += found.mid_us * one.times
                time[of][1] += one.us * one.times
        if key == "wrong" and "-v" in sys.argv:
            print("wrong", name, [(each.shape, each.dtype) for each in one.tensors], said, one.counts)
    for name in sorted(right, key=lambda name: time[name][1]):
        counts, (said_us, ran_us) = right[name], time[name]
        ratio = f"{said_us / ran_us:5.2f}" if ran_us else "    -"
        print(
            f"{name:45} right {counts['right']:5} wrong {counts['wrong']:4} untold {counts['untold']:3}"
            f"  time {ratio} of {ran_us:9.0f} us"
        )


if __name__ == "__main__":
    main()
