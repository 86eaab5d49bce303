"""What ``tracehunch ranks`` costs for each rank, and what that makes of a job of thousands.

    python benchmarks/ranks.py [TRACE ...] [--ranks N ...] [--workers N ...]

The cost of a rank is measured on the traces given (by default the recorded ones of two jobs), each in a
process of its own: processor time, peak memory, and the bytes that a worker sends back. What putting ranks
together costs is measured on results that are multiplied, each with the numbers and groups of a larger job.
From both comes an estimate of a job of the largest size on so many workers.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.examine import examine
from tracehunch.engines.memory import foreseen_bytes, text_bytes
from tracehunch.engines.sharing import Sharing
from tracehunch.report import ranks_json, ranks_text
from tracehunch.trace.discover import discover
from tracehunch.units import count, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Group, RankSummary

ROOT: Final = Path(__file__).parents[1]
RECORDED: Final = ROOT / "tests" / "data" / "h200" / "ranks"
RANKS: Final = 64
ALONE: Final = """
import json, pickle, resource, sys, time
import tracehunch.engines.task
from tracehunch.compare.ranks.examine import examine
before = time.process_time()
one = examine(sys.argv[1])
spent = time.process_time() - before
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
sent = len(pickle.dumps(one, 5))
print(json.dumps({"cpu_s": spent, "peak_bytes": peak, "sent_bytes": sent, "events": one.events}))
"""


@dataclass(frozen=True)
class Cost:
    """Of one rank."""

    path: str
    file_bytes: int
    text_bytes: int
    foreseen_bytes: int
    cpu_s: float
    peak_bytes: int
    sent_bytes: int
    events: int


def cost_of(path: Path) -> Cost:
    """Examine one file in a process of its own."""
    [source] = discover([path]).sources
    done = subprocess.run([sys.executable, "-c", ALONE, str(path)], capture_output=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return Cost(str(path), source.bytes or 0, text_bytes(source), foreseen_bytes(source), **told)


def multiplied(some: Sequence[RankSummary], ranks: int) -> list[RankSummary]:
    """Return as many ranks, each as a worker sends it, with the groups of a job of that size."""
    shared, made = Sharing(), []
    for rank in range(ranks):
        one = some[rank % len(some)]
        groups = tuple(_widened(group, ranks, len(some)) for group in one.groups)
        collectives = replace(
            one.collectives, groups=tuple(_widened(g, ranks, len(some)) for g in one.collectives.groups)
        )
        wide = replace(
            one, rank=rank, world_size=ranks, source=f"job/rank{rank}.json.gz", label=f"rank{rank}.json.gz",
            fingerprint=f"{rank:064x}", trace_id=None, groups=groups, collectives=collectives,
        )  # fmt: skip
        made.append(shared.of(pickle.loads(pickle.dumps(wide, 5))))  # noqa: S301  # our own
    return made


def _widened(group: Group, ranks: int, before: int) -> Group:
    """Let a group of all ranks be of all ranks of the larger job."""
    if len(group.ranks) != before:
        return group
    return replace(group, ranks=tuple(range(ranks)), size=ranks)


def timed(call: Any, *arguments: Any) -> tuple[float, Any]:
    """Return the processor time of a call, and what it gave."""
    before = time.process_time()
    result = call(*arguments)
    return time.process_time() - before, result


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--ranks", nargs="+", type=int, default=[256, 1000, 4000, 10_000])
    parser.add_argument("--workers", nargs="+", type=int, default=[2, 16, 128])
    options = parser.parse_args()
    default = [RECORDED / job / f"rank{rank}.json.gz" for job in ("tp", "ddp") for rank in (0, 1)]
    costs = [cost_of(path) for path in options.traces or default]
    print_costs(costs)
    together = print_together(options.ranks)
    print_collectives()
    print_estimate(costs, together, max(options.ranks), options.workers)


def print_costs(costs: Sequence[Cost]) -> None:
    """Print what one rank costs, and how that goes with its size."""
    print(
        "\none rank                                 text    events     CPU   MB/s     peak foreseen     sent"
    )
    for cost in costs:
        print(
            f"{cost.path[-36:]:36} {size(cost.text_bytes):>9} {count(cost.events):>9} {cost.cpu_s:6.2f}s "
            f"{cost.text_bytes / cost.cpu_s / 1e6:6.1f} {size(cost.peak_bytes):>8} "
            f"{cost.foreseen_bytes / cost.peak_bytes:7.2f}x {size(cost.sent_bytes):>8}"
        )


def print_together(sizes: Sequence[int]) -> dict[int, float]:
    """Print what putting so many ranks together costs; return the seconds by size."""
    some = [examine(RECORDED / "tp" / f"rank{rank}.json.gz") for rank in (0, 1)]
    print("\nranks together   sent in all  compare    text    JSON   of JSON  peak here  a rank, x first")
    seconds: dict[int, float] = {}
    for ranks in sizes:
        made = multiplied(some, ranks)
        sent = len(pickle.dumps(made[0], 5)) * ranks
        compare_s, job = timed(compare, made)
        text_s, _ = timed(ranks_text.render, job)
        json_s, report = timed(ranks_json.render, job)
        seconds[ranks] = compare_s + text_s
        first = seconds[sizes[0]] / sizes[0]
        print(
            f"{ranks:14,} {size(sent):>13} {compare_s:7.2f}s {text_s:6.2f}s {json_s:6.2f}s "
            f"{size(len(report)):>9} {size(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10):>10} "
            f"{seconds[ranks] / ranks / first:8.2f}x"
        )
    return seconds


def print_collectives() -> None:
    """Print what each collective of each rank takes of the memory that holds the whole job."""
    sys.path.insert(0, str(ROOT))
    from tests.compare.ranks.made import make  # noqa: PLC0415  # found only now

    print("\ncollectives a rank   ranks   sent for each   held for each")
    for repeat in (20, 100):
        with tempfile.TemporaryDirectory() as folder:
            some = [examine(path) for path in make(Path(folder), 2, repeat=repeat).paths]
        made = multiplied(some, RANKS)
        tracemalloc.start()
        job = compare(made)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        number = len(some[0].collectives)
        sent = len(pickle.dumps(made[0].collectives, 5))
        print(f"{number:18,} {len(job.rows):7} {sent / number:13.0f} B {held / number / RANKS:13.0f} B")


def print_estimate(
    costs: Sequence[Cost], together: dict[int, float], ranks: int, workers: Sequence[int]
) -> None:
    """Print how long a job of that size takes on so many workers, if every rank were like the trace."""
    print(
        f"\n{ranks:,} ranks like     CPU of all   read in all" + "".join(f"{n:>7} workers" for n in workers)
    )
    for cost in costs:
        whole = cost.cpu_s * ranks
        times = "".join(f"{(whole / n + together[ranks]) / 60:11.1f} min" for n in workers)
        print(f"{cost.path[-18:]:18} {whole / 3600:11.2f} h {size(cost.file_bytes * ranks):>13}{times}")


if __name__ == "__main__":
    main()
