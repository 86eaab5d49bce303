"""What ``tracehunch run`` costs a script, beside plain python, and beside torch.profiler alone.

    python benchmarks/run_overhead.py [--pairs 5] [--device cpu|cuda]

One training script, in a fresh process each time, in turns: under python, under python with torch.profiler in
its loop, under ``tracehunch run``. Ratios within a turn: a recorded step (at most 1.03 of torch.profiler's),
a step after detaching (1.00 of plain python's), and the script as a whole. On a CPU the times are CPU times,
on a GPU wall times; of the steps the fastest counts, which other processes disturbed least.
``tracehunch run`` records the start of the script besides, until it knows its steps: the whole costs more.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIP, WARMUP, STEPS, AFTER = 2, 1, 20, 60

SCRIPT = f"""
import json, sys, time, torch
device, out, profiled = sys.argv[1], sys.argv[2], len(sys.argv) > 3
clock = time.perf_counter if device == "cuda" else time.process_time
torch.set_num_threads(1)
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
x = torch.randn(4, 32, 64, device=device)
times, profiler = [], None
if profiled:
    kinds = [torch.profiler.ProfilerActivity.CPU]
    kinds += [torch.profiler.ProfilerActivity.CUDA] if device == "cuda" else []
    profiler = torch.profiler.profile(
        activities=kinds,
        schedule=torch.profiler.schedule(wait={SKIP}, warmup={WARMUP}, active={STEPS}, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(out + ".trace.json"),
        record_shapes=True,
        experimental_config=torch.profiler._ExperimentalConfig(profile_all_threads=True),
    )
    profiler.start()
for step in range({SKIP + WARMUP + STEPS + AFTER}):
    began = clock()
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    if device == "cuda":
        torch.cuda.synchronize()
    if profiler is not None:
        profiler.step()
    times.append(clock() - began)
if profiler is not None:
    profiler.stop()
json.dump([times, loss.item()], open(out, "w"))
"""

ALONE, WITH_TORCH, WITH_RUN = "python", "torch.profiler", "tracehunch run"


def timed(name: str, folder: Path, device: str) -> tuple[list[float], float, float]:
    """Run the script once; return the time of each step, of everything (in s), and the last loss."""
    out = folder / "times.json"
    run = ["-m", "tracehunch", "run", "--no-look", "-t", str(folder / "t.json")]
    run += ["--skip", str(SKIP), "--warmup", str(WARMUP), "--steps", str(STEPS)]
    command = [sys.executable, *(run if name == WITH_RUN else []), str(folder / "script.py")]
    command += [device, str(out), *(["profiled"] if name == WITH_TORCH else [])]
    before, began = os.times(), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    after, wall = os.times(), time.perf_counter() - began
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    times, loss = json.loads(out.read_text())
    return times, wall if device == "cuda" else cpu, loss


def interval_of_median(values: list[float]) -> tuple[float, float]:
    """Return where the median lies with a confidence of 95 % or more: order statistics, binomial(n, 1/2).

    Below six values no pair of order statistics has that confidence: the least and the largest.
    """
    ordered, n = sorted(values), len(values)
    outside, rank = 0.0, 0
    while (outside := outside + math.comb(n, rank) / 2**n) <= 0.025:
        rank += 1
    return ordered[max(rank - 1, 0)], ordered[n - max(rank, 1)]


def report(what: str, ratios: list[float], goal: str = "") -> None:
    """Print the median of ratios, and the interval in which it lies."""
    middle, (low, high) = statistics.median(ratios), interval_of_median(ratios)
    print(f"{what:<52} {middle:6.3f}  [{low:.3f}, {high:.3f}]  {goal}".rstrip())


def main() -> None:
    """Take all ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    names = [ALONE, WITH_TORCH, WITH_RUN]
    recorded, later, whole, bare = [], [], [], []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "script.py").write_text(SCRIPT)
        for turn in range(options.pairs):
            order = names[turn % 3 :] + names[: turn % 3]
            taken = {name: timed(name, folder, options.device) for name in order}
            assert len({loss for _, _, loss in taken.values()}) == 1, "the results differ"
            first = SKIP + WARMUP
            fastest = {name: min(times[first : first + STEPS - 1]) for name, (times, _, _) in taken.items()}
            after = {name: min(times[first + STEPS + 1 :]) for name, (times, _, _) in taken.items()}
            recorded.append(fastest[WITH_RUN] / fastest[WITH_TORCH])
            later.append(after[WITH_RUN] / after[ALONE])
            whole.append(taken[WITH_RUN][1] / taken[WITH_TORCH][1])
            bare.append(taken[WITH_RUN][1] / taken[ALONE][1])
    print(f"{options.device}, {options.pairs} turns: median ratio [95 % interval]; the losses are the same")
    report("a recorded step: tracehunch run / torch.profiler", recorded, "goal <= 1.03")
    report("a step after detaching / plain python", later, "goal 1.00")
    report("the whole script: tracehunch run / torch.profiler", whole)
    report("the whole script: tracehunch run / plain python", bare)


if __name__ == "__main__":
    main()
