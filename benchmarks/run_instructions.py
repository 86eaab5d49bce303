"""What ``tracehunch run`` adds to a recorded step, and to a step after it, in instructions.

    python benchmarks/run_instructions.py            (needs valgrind; about six minutes on an idle machine)

`run_overhead.py` measures time, which differs more from run to run than there is to see. Here callgrind
counts what a small training step executes on all threads: alone, with torch.profiler in its loop, under
``tracehunch run`` with the same options. Waiting and the kernel's own work are not in the counts.
Exits 1 if a recorded step costs over 3 % more than torch.profiler's, a later one over 0.3 % more than alone.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SKIP, WARMUP, STEPS, AFTER = 2, 1, 6, 4
MOST_RECORDED, MOST_AFTER = 1.03, 1.003  # of the latter, 0.1 to 0.2 % is between two runs alone

SCRIPT = f"""
import os, sys, torch
torch.set_num_threads(1)
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
x, profiler = torch.randn(4, 32, 64), None
if len(sys.argv) > 1:
    profiler = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait={SKIP}, warmup={WARMUP}, active={STEPS}, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(sys.argv[1]),
        record_shapes=True,
        experimental_config=torch.profiler._ExperimentalConfig(profile_all_threads=True),
    )
    profiler.start()
for step in range({SKIP + WARMUP + STEPS + AFTER}):
    os.getppid()  # where the counts so far are written
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    if profiler is not None:
        profiler.step()
os.getppid()
if profiler is not None:
    profiler.stop()
"""

ALONE, WITH_TORCH, WITH_RUN = "alone", "torch.profiler", "tracehunch run"


def counted(name: str, folder: Path) -> list[int]:
    """Run the script under callgrind; return the instructions of each of its steps."""
    out = folder / name.replace(" ", "_")
    run = ["-m", "tracehunch", "run", "--no-look", "-t", str(folder / "run.json"), "--max-seconds", "3600"]
    run += ["--skip", str(SKIP), "--warmup", str(WARMUP), "--steps", str(STEPS)]
    command = ["valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={out}"]
    command += [sys.executable, *(run if name == WITH_RUN else []), str(folder / "script.py")]
    command += [str(folder / "torch.json")] if name == WITH_TORCH else []
    same = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env=os.environ | same)
    parts = [Path(f"{out}.{number}") for number in range(2, SKIP + WARMUP + STEPS + AFTER + 2)]
    return [_total(part) for part in parts]  # part 1 is what came before the first step


def _total(part: Path) -> int:
    lines = part.read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("summary:"))


def main() -> None:
    """Count, and hold the ratios against the limits."""
    if shutil.which("valgrind") is None:
        sys.exit("run_instructions: valgrind is not installed; install it, or see run_overhead.py")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "script.py").write_text(SCRIPT)
        steps = {name: counted(name, folder) for name in (ALONE, WITH_TORCH, WITH_RUN)}
    first = SKIP + WARMUP
    recorded = {name: statistics.median(counts[first : first + STEPS - 1]) for name, counts in steps.items()}
    after = {name: statistics.median(counts[first + STEPS + 1 :]) for name, counts in steps.items()}
    for name in steps:
        print(f"{name:<15} {recorded[name]:>12,.0f} a recorded step, {after[name]:>12,.0f} a later one")
    ratio, later = recorded[WITH_RUN] / recorded[WITH_TORCH], after[WITH_RUN] / after[ALONE]
    print(f"a recorded step: tracehunch run / torch.profiler  {ratio:.4f}  (at most {MOST_RECORDED})")
    print(f"a step after detaching / alone                    {later:.4f}  (at most {MOST_AFTER})")
    sys.exit(ratio > MOST_RECORDED or later > MOST_AFTER)


if __name__ == "__main__":
    main()
