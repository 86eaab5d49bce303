"""How long ``tracehunch look --format json`` takes on a large trace, against ``json.load`` of the same file.

    python benchmarks/load.py [TRACE] [--rounds N] [--stages]

TRACE may be compressed with xz; it is unpacked to a temporary file first, so that both sides read plain JSON.
Without it the 275 MB trace under TRACEHUNCH_EXTRA_TRACES is taken. Both run in their own processes, by turns;
exits 1 if look takes more than a third of json.load's time, or a peak of over 1.2 GB of memory.
"""

from __future__ import annotations

import argparse
import lzma
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

EXTRA = Path(os.environ.get("TRACEHUNCH_EXTRA_TRACES", Path(__file__).parents[2] / "shared" / "traces"))
MOST_RATIO = 1 / 3
MOST_BYTES = 1_200_000_000
ROUNDS = 5

JSON_LOAD = "import json, sys; json.load(open(sys.argv[1], 'rb'))"
STAGES = """
import sys, time
marks = [("start", time.perf_counter())]
def mark(name): marks.append((name, time.perf_counter()))
from tracehunch.trace import read; mark("import trace")
from tracehunch.tree import link; from tracehunch.facts import measure; from tracehunch import checks
from tracehunch.report import json_report; from tracehunch.verdict import Look; mark("import the rest")
trace = read(sys.argv[1]); mark("read")
tree = link(trace); mark("link")
facts = measure(tree); mark("facts")
checked = checks.run(facts); mark("checks")
json_report.render(Look(facts, checked)); mark("render")
for (_, before), (name, after) in zip(marks, marks[1:]): print(f"  {name:16} {after - before:6.3f} s")
"""


@dataclass(frozen=True)
class Run:
    """Wall time and peak resident memory of one process."""

    seconds: float
    peak_bytes: int


def run(command: list[str]) -> Run:
    """Run a command to its end; raises SystemExit where it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command[:4])} ... exited {process.returncode}")
    scale = 1 if sys.platform == "darwin" else 1024
    return Run(seconds, usage.ru_maxrss * scale)


def compare(path: Path, rounds: int) -> bool:
    """Run both sides by turns and print what they took; whether the limits were kept."""
    ours, theirs = [], []
    for number in range(rounds):
        theirs.append(run([sys.executable, "-c", JSON_LOAD, str(path)]))
        ours.append(run([sys.executable, "-m", "tracehunch", "look", "--format", "json", str(path)]))
        print(f"  round {number + 1}: json.load {theirs[-1].seconds:.2f} s, look {ours[-1].seconds:.2f} s")
    ratio = statistics.median(r.seconds for r in ours) / statistics.median(r.seconds for r in theirs)
    peak = max(r.peak_bytes for r in ours)
    print(f"json.load  median {statistics.median(r.seconds for r in theirs):.2f} s, ", end="")
    print(f"peak {max(r.peak_bytes for r in theirs) / 1e9:.2f} GB")
    print(f"look       median {statistics.median(r.seconds for r in ours):.2f} s, peak {peak / 1e9:.2f} GB")
    print(f"ratio      {ratio:.3f} (at most {MOST_RATIO:.3f}), peak at most {MOST_BYTES / 1e9:.1f} GB")
    return ratio <= MOST_RATIO and peak <= MOST_BYTES


def unpacked(source: Path, folder: Path) -> Path:
    """Return the trace as plain JSON, unpacked where it must be."""
    if source.suffix != ".xz":
        return source
    target = folder / "trace.json"
    with lzma.open(source) as packed, target.open("wb") as plain:
        shutil.copyfileobj(packed, plain, 1 << 20)
    return target


def main() -> int:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("trace", nargs="?", type=Path, default=EXTRA / "h200" / "big_rank0.json.xz")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--stages", action="store_true", help="also print how long each stage takes")
    arguments = parser.parse_args()
    if not arguments.trace.is_file():
        parser.error(f"no trace at {arguments.trace} (name one, or set TRACEHUNCH_EXTRA_TRACES)")
    with tempfile.TemporaryDirectory() as folder:
        path = unpacked(arguments.trace, Path(folder))
        print(f"{arguments.trace.name}: {path.stat().st_size / 1e6:.0f} MB of JSON")
        if arguments.stages:
            subprocess.run([sys.executable, "-c", STAGES, str(path)], check=True)
        return 0 if compare(path, arguments.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
