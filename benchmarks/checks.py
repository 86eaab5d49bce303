"""How long all checks together take on a large trace, against reading it.

    python benchmarks/checks.py [TRACE] [--rounds N]

TRACE may be compressed with xz. Without it the 275 MB trace under TRACEHUNCH_EXTRA_TRACES is taken. Reading
and checking run in one process, by turns; exits 1 if the checks take more than half of the reading's time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from load import EXTRA, unpacked

from tracehunch import checks
from tracehunch.facts import Facts, measure
from tracehunch.trace import read
from tracehunch.tree import link

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

MOST_RATIO = 0.5
ROUNDS = 5


T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds that a call takes, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def each(facts: Facts) -> dict[str, float]:
    """Return the seconds of each check by its id."""

    def alone(module: ModuleType) -> float:
        return timed(lambda: list(module.check(facts)))[0]

    return {checks.check_id(module): alone(module) for module in checks.CHECKS}


def compare(path: Path, rounds: int) -> bool:
    """Read and check by turns and print what both took; whether the limit was kept."""
    reading, checking, parts = [], [], []
    for number in range(rounds):
        read_s, trace = timed(partial(read, path))
        facts = measure(link(trace))
        check_s, _ = timed(partial(checks.run, facts))
        reading.append(read_s)
        checking.append(check_s)
        parts.append(each(measure(link(trace))))
        print(f"  round {number + 1}: reading {read_s:.2f} s, checks {check_s:.2f} s")
    ratio = statistics.median(checking) / statistics.median(reading)
    print(f"reading {statistics.median(reading):.2f} s, checks {statistics.median(checking):.2f} s (medians)")
    print(f"ratio   {ratio:.3f} (at most {MOST_RATIO})")
    medians = {name: statistics.median(part[name] for part in parts) for name in parts[0]}
    for name, seconds in sorted(medians.items(), key=lambda item: -item[1])[:8]:
        print(f"  {name:20} {seconds * 1e3:7.1f} ms alone")
    return ratio <= MOST_RATIO


def main() -> int:
    """Parse the arguments and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trace", nargs="?", type=Path, default=EXTRA / "h200" / "big_rank0.json.xz")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if not given.trace.is_file():
        parser.error(f"no trace at {given.trace} (name one, or set TRACEHUNCH_EXTRA_TRACES)")
    with tempfile.TemporaryDirectory() as folder:
        return 0 if compare(unpacked(given.trace, Path(folder)), given.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
