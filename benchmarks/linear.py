"""Whether ``look`` is linear in the size of a trace: processor time of several sizes, and their line.

    python benchmarks/linear.py TRACE TRACE ... [--rounds N]

The traces, such as benchmarks/big.py makes, should differ in nothing but their length. Each is looked at in a
process of its own, by turns, and its least user and system time counts: other work on the machine disturbs
that less than the clock. Peak memory is printed beside it. Exits 1 where a trace takes over a quarter longer
than the line through all of them says.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROUNDS: Final = 3
MOST_OVER: Final = 1.25


def cost(trace: Path) -> tuple[float, float]:
    """Look at a trace; the processor seconds and peak megabytes it took. SystemExit where that fails."""
    command = [sys.executable, "-m", "tracehunch", "look", "--format", "json", str(trace)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"look {trace} exited {process.returncode}")
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / scale


def line(x: list[float], y: list[float]) -> tuple[float, float]:
    """Least squares: slope, and value at 0."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((one - mean_x) ** 2 for one in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    return slope, mean_y - slope * mean_x


def main() -> int:
    """Measure, fit and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if len(given.traces) < 3:
        parser.error("three sizes at least: two are always on a line")
    runs = [[cost(trace) for trace in given.traces] for _ in range(given.rounds)]
    seconds = [min(run[at][0] for run in runs) for at in range(len(given.traces))]
    megabytes = [trace.stat().st_size / 1e6 for trace in given.traces]
    slope, start = line(megabytes, seconds)
    print(f"{start:.2f} s and {1000 * slope:.2f} s a gigabyte of the file")
    worst = 0.0
    for at, trace in enumerate(given.traces):
        expected = start + slope * megabytes[at]
        worst = max(worst, seconds[at] / expected) if expected > 0 else worst
        peak = max(run[at][1] for run in runs)
        print(
            f"  {trace.name:20}{megabytes[at]:8.0f} MB{seconds[at]:8.2f} s, by the line {expected:.2f}"
            f"{peak:10.0f} MB of memory"
        )
    return 1 if worst > MOST_OVER else 0


if __name__ == "__main__":
    sys.exit(main())
