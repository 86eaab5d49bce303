"""How the time of each check grows: four times the events must not take much more than four times as long.

    python benchmarks/growth.py [SHAPE ...] [--scale F]

Traces are made up, of shapes that tempt to quadratic work: thousands of annotation names, steps, calls, tiny
ops, streams, threads, Python frames. Each is made in two sizes; what took longer than a moment in the larger
one is printed with the factor. Exits 1 if a check grew by more than twice the size.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tracehunch import checks
from tracehunch.facts import Facts, measure
from tracehunch.trace import Trace, read_bytes
from tracehunch.tree import link

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

TIMES: Final = 4
MOST: Final = 2.0
"""How much more than the size the time may grow."""
SHOWN_S: Final = 0.02
JUDGED_S: Final = 0.05
"""Shorter times are more noise than growth."""
ROUNDS: Final = 2

ADD: Final = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
COPY: Final = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda(int)>(int)"
CAST: Final = "void at::native::unrolled_elementwise_kernel<at::native::bfloat16_copy_kernel_cuda>(int)"
SOFTMAX: Final = "void softmax_warp_forward<float, float, float, 10, false, false>(float*, float const*, int)"
GEMM: Final = "ampere_sgemm_128x64_tn"
ALL_REDUCE: Final = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
HALF: Final = ("c10::BFloat16", "float")
BATCH: Final = [[8, 256, 64], [8, 64, 256]]
SCORES: Final = [[8, 256, 256], [8, 256, 64]]
DEVICE: Final = {
    "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150_000_000_000, "computeMajor": 9, "computeMinor": 0,
    "numSms": 132, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32,
    "regsPerMultiprocessor": 65536, "sharedMemPerBlock": 49152, "sharedMemPerBlockOptin": 232448,
    "sharedMemPerMultiprocessor": 233472,
}  # fmt: skip


@dataclass
class Made:
    """A trace in the making; times are microseconds."""

    events: list[dict[str, Any]] = field(default_factory=list)
    host: float = 1000.0
    gpu: float = 1000.0
    thread: int = 100
    stream: int = 7
    correlation: int = 0

    def event(self, cat: str, name: str, start: float, **args: Any) -> None:
        """Add an event that ends now, on the launching thread."""
        place = {"pid": 1, "tid": self.thread, "ts": round(start, 3), "dur": round(self.host - start, 3)}
        self.events.append({"ph": "X", "cat": cat, "name": name, **place, "args": args})

    def around(self, cat: str, name: str, body: Callable[[], object]) -> None:
        """Put an annotation or a frame around what a body adds."""
        start, self.host = self.host, self.host + 1
        body()
        self.host += 1
        self.event(cat, name, start)

    def call(self, name: str, length: float = 2.0) -> None:
        """Add a call of the runtime."""
        start, self.host = self.host, self.host + length
        self.correlation += 1
        self.event("cuda_runtime", name, start, correlation=self.correlation)

    def op(
        self,
        *names: str,
        runs: str = "",
        length: float = 3.0,
        dims: Any = None,
        types: Any = None,
        took: float = 2.0,
    ) -> None:
        """Add an op, ops inside it, and what the innermost puts on the GPU."""
        starts = [self.host + at for at in range(len(names))]
        self.host += len(names)
        if runs:
            self.launch(runs, length)
        self.host += took
        for name, start in reversed(list(zip(names, starts, strict=True))):
            sizes, kinds = dims or [[64, 64], [64, 64]], types or ["float", "float"]
            self.event("cpu_op", name, start, **{"Input Dims": sizes, "Input type": kinds})
        self.host += 1

    def launch(self, name: str, length: float) -> None:
        """Add a launch and its activity."""
        copies = name.startswith("Memcpy")
        self.call("cudaMemcpyAsync" if copies else "cudaLaunchKernel")
        self.gpu = max(self.gpu, self.host + 3)
        args = {"correlation": self.correlation, "device": 0, "stream": self.stream}
        more = {"bytes": 4 << 20} if copies else {"grid": [132, 1, 1], "block": [128, 1, 1]}
        place = {"pid": 0, "tid": self.stream, "ts": round(self.gpu, 3), "dur": length}
        cat = "gpu_memcpy" if copies else "kernel"
        self.events.append({"ph": "X", "cat": cat, "name": name, **place, "args": args | more})
        self.gpu += length + 0.5

    def work(self) -> None:
        """Add a bit of all that checks look for."""
        self.op("aten::linear", "aten::addmm", runs=GEMM, length=12)
        self.op(
            "aten::masked_fill", "aten::clone", "aten::copy_", runs="Memcpy DtoD (Device -> Device)", length=9
        )
        self.op("aten::to", "aten::_to_copy", "aten::copy_", runs=CAST, length=8, types=HALF)
        self.op("aten::to", "aten::_to_copy", "aten::copy_", runs=COPY, length=8, types=HALF[::-1])
        self.op("aten::contiguous", "aten::clone", "aten::copy_", runs=COPY, length=8)
        for memory in ("Pageable", "Pinned"):
            self.op("aten::to", "aten::copy_", runs=f"Memcpy HtoD ({memory} -> Device)", length=30)
        self.op("aten::item", runs="Memcpy DtoH (Device -> Pinned)")
        self.call("cudaStreamSynchronize", max(self.gpu - self.host, 0) + 2)
        self.call("cudaMalloc", 20)
        self.call("cudaFree", 20)
        self.op("aten::bmm", runs=GEMM, length=25, dims=BATCH)
        self.op("aten::mul", runs=ADD, length=30, dims=SCORES[:1])
        self.op("aten::softmax", "aten::_softmax", runs=SOFTMAX, length=25, dims=SCORES[:1])
        self.op("aten::bmm", runs=GEMM, length=25, dims=SCORES)
        self.op(
            "aten::cudnn_convolution", runs="cudnn_kernel", took=2500 if self.correlation % 50 == 0 else 3
        )
        self.op("c10d::allreduce_", "record_param_comms", runs=ALL_REDUCE, length=20)

    def trace(self) -> Trace:
        """Read it."""
        events = sorted(self.events, key=lambda event: event["ts"])
        document = {"deviceProperties": [DEVICE], "record_shapes": 1, "traceEvents": events}
        return read_bytes(json.dumps(document).encode(), "made up")


def names(made: Made, number: int) -> None:
    """Add as many annotation names, each around a bit of everything."""
    for at in range(number):
        made.around("user_annotation", f"part {at}", made.work)


def thin_names(made: Made, number: int) -> None:
    """Add as many annotation names, each around one op."""
    for at in range(number):
        made.around("user_annotation", f"part {at}", lambda: made.op("aten::add", runs=ADD))


def tiny_ops(made: Made, number: int) -> None:
    """Add as many tiny ops to one annotation."""

    def body() -> None:
        for at in range(number):
            made.op(("aten::add", "aten::mul", "aten::sub")[at % 3], runs=ADD, length=1.5)

    made.around("user_annotation", "fwd", body)


def steps(made: Made, number: int) -> None:
    """Add as many steps, each with an optimizer that goes tensor by tensor, and a stall."""

    def update() -> None:
        for _ in range(6):
            for name in ("aten::mul_", "aten::lerp_", "aten::addcdiv_"):
                made.op(name, runs=ADD, length=2)

    def step() -> None:
        made.work()
        made.around("user_annotation", "Optimizer.step#AdamW.step", update)
        made.host += 1500

    for at in range(number):
        made.around("user_annotation", f"ProfilerStep#{at}", step)


def streams(made: Made, number: int) -> None:
    """Spread the work over 64 streams."""

    def body() -> None:
        for at in range(number):
            made.stream, made.gpu = 7 + at % 64, made.host
            made.work()

    made.around("user_annotation", "fwd", body)


def threads(made: Made, number: int) -> None:
    """Spread the work over 64 threads of the host."""
    for at in range(number):
        made.thread = 100 + at % 64
        made.around("user_annotation", "fwd", made.work)


def frames(made: Made, number: int) -> None:
    """Put the work of as many calls into Python frames, each with a stall."""

    def stalled() -> None:
        made.work()
        made.host += 1800

    for at in range(number):
        frame = partial(made.around, "python_function", f"model.py({10 + at % 7}): forward", stalled)
        made.around("user_annotation", "fwd", frame)


def loops(made: Made, number: int) -> None:
    """Add as many calls with a loop over rows."""

    def body() -> None:
        for _ in range(20):
            made.op("aten::select")
            made.op("aten::copy_", runs=COPY, length=1.5)

    for _ in range(number):
        made.around("user_annotation", "fwd", body)


SHAPES: Final[Mapping[str, tuple[Callable[[Made, int], None], int]]] = {
    "names": (names, 400),
    "thin-names": (thin_names, 5_000),
    "tiny-ops": (tiny_ops, 50_000),
    "steps": (steps, 500),
    "streams": (streams, 1_000),
    "threads": (threads, 500),
    "frames": (frames, 500),
    "loops": (loops, 500),
}
"""How each is made, and the smaller size."""


def _all_of(module: ModuleType, facts: Facts) -> list[object]:
    return list(module.check(facts))


def seconds(shape: Callable[[Made, int], None], number: int) -> dict[str, float]:
    """Make a trace and return the processor time of each stage and check."""
    found: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = work()
        found[name] = time.process_time() - start
        return result

    made = Made()
    shape(made, number)
    trace = timed("(reading)", made.trace)
    facts = timed("(facts)", lambda: measure(link(trace)))
    timed("(all checks)", lambda: checks.run(facts))
    again = measure(link(trace))
    for module in checks.CHECKS:
        timed(checks.check_id(module), partial(_all_of, module, again))
    return found


def best(shape: Callable[[Made, int], None], number: int) -> dict[str, float]:
    """Return the shortest times of a few rounds."""
    rounds = [seconds(shape, number) for _ in range(ROUNDS)]
    return {name: min(one[name] for one in rounds) for name in rounds[0]}


def grows_too_much(name: str, scale: float) -> bool:
    """Compare both sizes of a shape and print what matters; whether a check grew more than it may."""
    shape, number = SHAPES[name][0], max(int(SHAPES[name][1] * scale), 1)
    small, large = best(shape, number), best(shape, TIMES * number)
    print(f"{name}: {number:,} and {TIMES * number:,}")
    bad = False
    for what, took in sorted(large.items(), key=lambda item: -item[1]):
        if took >= SHOWN_S:
            times = took / max(small[what], 1e-3)
            too_much = took >= JUDGED_S and times > MOST * TIMES and not what.startswith("(")
            bad |= too_much
            mark = "  <- too much" if too_much else ""
            print(f"  {what:24}{small[what] * 1e3:8.1f} -> {took * 1e3:8.1f} ms  x{times:.1f}{mark}")
    return bad


def main() -> int:
    """Parse the arguments and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("shape", nargs="*", choices=[*SHAPES, []], help="all if none is given")
    parser.add_argument("--scale", type=float, default=1.0, help="make all traces larger or smaller")
    given = parser.parse_args()
    found = [grows_too_much(name, given.scale) for name in given.shape or SHAPES]
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())
