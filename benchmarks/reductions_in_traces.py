"""Reductions in the H200 traces of the tests: how they were launched, and how long they took.

python benchmarks/reductions_in_traces.py    # predicted and measured, shape by shape
"""

from __future__ import annotations

import gzip
import json
import statistics
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehunch.predict.environment import environment
from tracehunch.predict.ops import Tensor
from tracehunch.predict.ops.call import steps_of
from tracehunch.predict.ops.times import step_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.predict.activities import TimeRange
    from tracehunch.predict.ops.steps import Step

DATA = Path(__file__).parent.parent / "tests" / "data"
ENV = environment("h200", "2.11", 91900)
TYPES = {
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "bool": "bool",
    "long int": "int64",
}
OPS = ("sum", "mean", "amax", "max", "min", "all", "any", "argmax", "var", "linalg_vector_norm")


@dataclass(frozen=True)
class Reduction:
    """Calls of an op that ran one reduction kernel each: the grid and block of it, and how long it took."""

    op: str
    tensor: Tensor
    dims: tuple[int, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cleared: bool
    all_us: tuple[float, ...]

    @property
    def us(self) -> float:
        """The median of microseconds."""
        return statistics.median(self.all_us)

    @cached_property
    def step(self) -> Step:
        """The kernel that is expected."""
        options = {"dim": self.dims} if self.dims else {}
        return steps_of(self.op, (self.tensor,), options, ENV)[-1]

    @property
    def time(self) -> TimeRange:
        """Microseconds that are expected."""
        assert ENV.gpu is not None
        return step_time(self.step, ENV.gpu)


def in_traces() -> Iterator[Reduction]:
    """Yield the reductions of all traces, those that are alike together."""
    found: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for path in sorted(DATA.glob("h200*/**/*.json.gz")):
        for key, us in _in_trace(path):
            found[key].append(us)
    for key, all_us in found.items():
        yield Reduction(*key, tuple(all_us))


def _in_trace(path: Path) -> Iterator[tuple[tuple[Any, ...], float]]:
    events = json.loads(gzip.decompress(path.read_bytes()))
    events = events.get("traceEvents", []) if isinstance(events, dict) else []
    by_op: dict[int, list[dict[str, Any]]] = defaultdict(list)
    ops: dict[int, dict[str, Any]] = {}
    for event in events:
        number = event.get("args", {}).get("External id") if event.get("ph") == "X" else None
        if event.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy"):
            by_op[number].append(event)
        elif event.get("cat") == "cpu_op" and number is not None:
            ops.setdefault(number, event)
    for number, ran in by_op.items():
        kernels = [one for one in ran if one["cat"] == "kernel"]
        op = ops.get(number, {"name": "", "args": {}})
        if len(kernels) == 1 and "reduce_kernel<" in kernels[0]["name"] and op["name"][6:] in OPS:
            args, ran_args = op["args"], kernels[0]["args"]
            if args.get("Input Strides") and args["Input type"][0] in TYPES:
                strides = tuple(args["Input Strides"][0])
                tensor = Tensor(tuple(args["Input Dims"][0]), TYPES[args["Input type"][0]], strides)
                dims = _dims(args.get("Concrete Inputs") or [], len(strides))
                how = tuple(ran_args["grid"]), tuple(ran_args["block"]), len(ran) > 1
                yield (op["name"][6:], tensor, dims, *how), kernels[0]["dur"]


def _dims(given: Sequence[str], of: int) -> tuple[int, ...]:
    """Return the dimensions that a call names, none for all: a list, or a number for ops that take one."""
    if len(given) <= 1 or not given[1].startswith(("[", "-", *"0123456789")) or "." in given[1]:
        return ()
    named = json.loads(given[1])
    return tuple(sorted(dim % of for dim in (named if isinstance(named, list) else [named])))


def main() -> None:
    """Print all, by op and shape."""
    for one in sorted(in_traces(), key=lambda one: (one.op, one.tensor.shape)):
        said = one.time
        print(
            f"{one.op:8} {one.tensor.shape!s:20} {one.tensor.dtype:5} {one.dims!s:10} {one.grid[0]:5} x"
            f" {one.grid[1]:4} of {one.block[0]:4} x {one.block[1]:3}: {len(one.all_us):5} took"
            f" {one.us:6.1f} us, predicted {said.mid_us:6.1f} ({said.low_us:.1f} to {said.high_us:.1f})"
        )


if __name__ == "__main__":
    main()
