"""What ``tracehunch.profile`` costs beside ``torch.profiler`` with the same options, and once detached.

    python benchmarks/capture.py [--pairs 15] [--device cpu|cuda]

Ratios of times taken in one run, in pairs whose order alternates: a step under both recorders (at most 1.03),
all of the recording (start, warm-up, steps, writing the trace), and a step after the recorder has detached
beside one that was never profiled (1.00). On a CPU the times are CPU times of the process, on a GPU wall
times. Each line gives the median over the pairs, and its 95 % interval from order statistics.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch

import tracehunch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STEPS = 20
LABEL = "train_step"
CPU_CLOCK = time.process_time  # of all threads; other processes do not disturb it


def training_step(device: str) -> Callable[[], None]:
    """Return a training step of a small transformer: some 1,500 ops, little work in each."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
    x = torch.randn(4, 32, 64, device=device)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def clock() -> float:
    """Return seconds: CPU time, or on a GPU, which works beside it, the wall's."""
    return time.perf_counter() if torch.cuda.is_available() else CPU_CLOCK()


def timed(step: Callable[[], None], after: Callable[[], None], n: int) -> float:
    """Return the time of the fastest of ``n`` steps in seconds, with what is called after each.

    The fastest, since it is the one that other processes disturbed least.
    """
    times = []
    for _ in range(n):
        began = clock()
        step()
        after()
        times.append(clock() - began)
    return min(times)


def with_torch(step: Callable[[], None], path: Path, device: str) -> tuple[float, float]:
    """Record with PyTorch's profiler alone; return the time of a recorded step, and of everything."""
    kinds = torch.profiler.ProfilerActivity
    began = clock()
    with torch.profiler.profile(
        activities=[kinds.CPU, kinds.CUDA] if device == "cuda" else [kinds.CPU],
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=STEPS, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(path)),
        record_shapes=True,
    ) as profiler:

        def labelled() -> None:
            with torch.profiler.record_function(LABEL):
                step()

        timed(labelled, profiler.step, 2)
        recorded = timed(labelled, profiler.step, STEPS - 1)
        timed(labelled, profiler.step, 1)  # which writes the trace
    return recorded, clock() - began


def with_tracehunch(step: Callable[[], None], path: Path, device: str) -> tuple[float, float]:
    """Record the same with tracehunch."""
    began = clock()
    with tracehunch.profile(LABEL, path=path, skip=1, warmup=1, steps=STEPS, cuda=device == "cuda") as p:
        timed(step, p.step, 2)
        recorded = timed(step, p.step, STEPS - 1)
        timed(step, p.step, 1)
    assert p.steps_recorded == STEPS, p.reason
    return recorded, clock() - began


def detached(step: Callable[[], None], path: Path, device: str) -> tuple[float, float]:
    """Return the time of a step after the recorder has detached, and of one without any, in turns."""
    bare, after = [], []
    with tracehunch.profile(LABEL, path=path, skip=0, warmup=0, steps=1, cuda=device == "cuda") as p:
        timed(step, p.step, 1)
        assert p.detached
        for _ in range(10):
            bare.append(timed(step, lambda: None, 5))
            after.append(timed(step, p.step, 5))
    return statistics.median(after), statistics.median(bare)


def report(name: str, ratios: Sequence[float], goal: str) -> None:
    """Print the median of ratios with its interval."""
    ranked = sorted(ratios)
    n = len(ranked)
    reach = 0.98 * math.sqrt(n)
    low, high = ranked[max(math.floor(n / 2 - reach), 0)], ranked[min(math.ceil(n / 2 + reach), n) - 1]
    print(f"{name:<52} {statistics.median(ranked):6.3f}  [{low:.3f}, {high:.3f}]  goal {goal}")


def main() -> None:
    """Take all ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    step = training_step(options.device)
    for _ in range(5):
        step()
    steps, whole, later = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        for pair in range(options.pairs):
            order = (with_torch, with_tracehunch) if pair % 2 else (with_tracehunch, with_torch)
            taken = {one: one(step, path, options.device) for one in order}
            steps.append(taken[with_tracehunch][0] / taken[with_torch][0])
            whole.append(taken[with_tracehunch][1] / taken[with_torch][1])
            after, bare = detached(step, path, options.device)
            later.append(after / bare)
    print(f"torch {torch.__version__}, {options.device}, {options.pairs} pairs: median ratio [95 %]")
    report("a recorded step: tracehunch / torch.profiler", steps, "<= 1.03")
    report("start to written trace: tracehunch / torch.profiler", whole, "")
    report("a step after detaching / never profiled", later, "1.00")


if __name__ == "__main__":
    main()
