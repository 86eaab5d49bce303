"""Holds the breakdown of ranks against that of HolisticTraceAnalysis 0.5.0, which is no dependency.

    python -m venv /tmp/hta && /tmp/hta/bin/pip install HolisticTraceAnalysis==0.5.0
    python benchmarks/hta_truth.py --hta-python /tmp/hta/bin/python FOLDER_OF_ONE_JOB...

HTA looks at less than the whole file: at activities whose launch was recorded and began before the last
profiler step, from the start of the first to the end of the last. So our own interval functions are run on
what HTA looks at: the table "same activities, same window", in which every figure must agree within 1 %. Its
last column is HTA as it comes, which rounds stamps. The table below has what both say of the whole file.
Exits 1 where a figure that both define alike differs by more.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tracehunch.checks.exposed_communication import collectives, computing
from tracehunch.compare.ranks.breakdown import breakdowns, length_ns, parts_of, running, spans_of
from tracehunch.facts import measure
from tracehunch.trace import read
from tracehunch.trace.model import UNKNOWN_NS, Cat
from tracehunch.tree import NONE, link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.compare.ranks.model import Breakdown
    from tracehunch.facts import Facts
    from tracehunch.trace.model import Int64

Figures = dict[int, dict[str, float]]

TOLERANCE = 0.01
SUFFIXES = (".json", ".json.gz")
NOT_THE_HOST = ("device", "unknown")
"""Causes of idle time, as tracehunch has them, that are not the host's."""

_HTA = """
import json, logging, sys, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
files = {int(rank): path for rank, path in json.loads(sys.argv[1]).items()}
one = TraceAnalysis(trace_files=files, include_last_profiler_step=sys.argv[2] == "all")
whole = one.get_temporal_breakdown(visualize=False).set_index("rank")
overlap = one.get_comm_comp_overlap(visualize=False).set_index("rank")
found = {}
for rank in files:
    idle = one.get_idle_time_breakdown(ranks=[rank], visualize=False)[0]
    found[rank] = {
        "window": float(whole.loc[rank, "kernel_time(us)"]),
        "compute": float(whole.loc[rank, "compute_time(us)"]),
        "not compute": float(whole.loc[rank, "non_compute_time(us)"]),
        "idle": float(whole.loc[rank, "idle_time(us)"]),
        "overlap %": float(overlap.loc[rank, "comp_comm_overlap_pctg"]),
    }
    for row in idle.itertuples():
        found[rank][f"idle, stream {row.stream}, {row.idle_category}"] = float(row.idle_time)
print("FOUND" + json.dumps(found))
"""


@dataclass(frozen=True)
class Hta:
    """What HTA makes of the ranks of a job: rank -> figure -> microseconds."""

    exact: Figures  # with HTA_DISABLE_NS_ROUNDING: stamps as recorded
    usual: Figures  # as HTA comes: starts rounded up, ends rounded down to the microsecond
    all_steps: Figures  # stamps as recorded, the last profiler step too


@dataclass(frozen=True)
class Ours:
    """Figures of one rank in microseconds: on HTA's terms, and as ``tracehunch ranks`` has them."""

    same: Mapping[str, float]
    breakdown: Breakdown


def hta_of(python: str, files: Mapping[int, Path]) -> Hta:
    """Run HTA on the ranks of a job."""
    return Hta(
        exact=hta_run(python, files, rounding=False, steps="all but the last"),
        usual=hta_run(python, files, rounding=True, steps="all but the last"),
        all_steps=hta_run(python, files, rounding=False, steps="all"),
    )


def hta_run(python: str, files: Mapping[int, Path], *, rounding: bool, steps: str) -> Figures:
    """Run HTA once, in its own interpreter."""
    text = json.dumps({str(rank): str(path.resolve()) for rank, path in files.items()})
    variables = {**os.environ, "HTA_DISABLE_NS_ROUNDING": "0" if rounding else "1"}
    run = subprocess.run(
        [python, "-c", _HTA, text, steps], capture_output=True, text=True, env=variables, check=False
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("FOUND")]
    if not lines:
        sys.exit(f"HTA failed:\n{run.stderr[-2000:]}")
    return {int(rank): found for rank, found in json.loads(lines[-1].removeprefix("FOUND")).items()}


def ours_of(path: Path, *, several_steps: bool) -> Ours:
    """Return our figures of one rank, which has to have used one device."""
    facts = measure(link(read(path)))
    (whole,) = breakdowns(facts)
    return Ours({**temporal(facts, several_steps), **idle_by_stream(facts, several_steps)}, whole)


def kept(facts: Facts, several_steps: bool) -> Int64:
    """GPU rows that HTA looks at."""
    tree = facts.tree
    trace = tree.trace
    rows = trace.gpu.row.astype(np.int64)
    launch = tree.launch[rows].astype(np.int64)
    wanted = (trace.gpu.stream >= 0) & (launch != NONE) & (trace.start_ns[rows] != UNKNOWN_NS)
    if several_steps:
        is_step = np.array([name.startswith("ProfilerStep") for name in trace.names])[trace.name]
        wanted &= trace.start_ns[launch] < trace.start_ns[is_step].max()
    return rows[wanted]


def temporal(facts: Facts, several_steps: bool) -> dict[str, float]:
    """HTA's temporal breakdown and overlap, by our interval functions."""
    trace, rows = facts.tree.trace, kept(facts, several_steps)
    (device,) = np.unique(trace.gpu.device).tolist()
    copying = trace.rows(Cat.MEMCPY, Cat.MEMSET)
    parts = parts_of(
        *(
            running(trace, np.intersect1d(some, rows), device)
            for some in (computing(facts), collectives(facts), copying)
        )
    )
    window = int(trace.end_ns()[rows].max() - trace.start_ns[rows].min())
    busy = length_ns(spans_of(trace.start_ns[rows], trace.end_ns()[rows]))
    overlapped = parts.communication_ns - parts.exposed_communication_ns
    return {
        "window": window / 1e3,
        "compute": parts.compute_ns / 1e3,
        "not compute": (parts.exposed_communication_ns + parts.copy_ns) / 1e3,
        "idle": (window - busy) / 1e3,
        "overlap %": 100 * overlapped / parts.communication_ns if parts.communication_ns else float("nan"),
    }


def idle_by_stream(facts: Facts, several_steps: bool) -> dict[str, float]:
    """HTA's causes of idle time on each stream: launched too late (host), a short gap (kernel), other."""
    tree = facts.tree
    trace = tree.trace
    rows = kept(facts, several_steps)
    stream = trace.gpu.stream[np.searchsorted(trace.gpu.row, rows)]
    found: dict[str, float] = defaultdict(float)
    for number in np.unique(stream).tolist():
        mine = rows[stream == number]
        mine = mine[np.argsort(trace.start_ns[mine], kind="stable")]
        before, after = mine[:-1], mine[1:]
        gap = (trace.start_ns[after] - trace.end_ns()[before]) / 1e3
        late = trace.start_ns[tree.launch[after]] > trace.end_ns()[before]
        short = ~late & (gap < 30)  # microseconds: HTA's default
        for name, chosen in (("host_wait", late), ("kernel_wait", short), ("other", ~late & ~short)):
            found[f"idle, stream {number}, {name}"] += float(gap[chosen].sum())
    return found


def ranks_in(folder: Path) -> dict[int, Path]:
    """Files of a folder by rank, as their headers say, else by their order."""
    paths = [path for path in sorted(folder.iterdir()) if path.name.endswith(SUFFIXES)]
    stated = [read(path).header.rank for path in paths]
    return {at if rank is None else rank: paths[at] for at, rank in enumerate(stated)}


def report(folder: Path, python: str) -> bool:
    """Print one job; returns whether a figure that is defined alike differs."""
    files = ranks_in(folder)
    hta = hta_of(python, files)
    names = {name for path in files.values() for name in read(path).names if name.startswith("ProfilerStep")}
    wrong = False
    for rank, path in files.items():
        ours = ours_of(path, several_steps=len(names) > 1)
        print(f"\n{folder.name}, rank {rank}, us")
        print(f"  {'same activities, same window':38}{'HTA':>12}{'ours':>12}{'ratio':>9}{'HTA rounds':>13}")
        for name, theirs in hta.exact[rank].items():
            differs = differ(name, theirs, ours.same.get(name, 0.0))
            line(name, theirs, ours.same.get(name, 0.0), hta.usual[rank].get(name), differs=differs)
            wrong |= differs
        print(f"  {'the whole file, each in its own words':38}{'HTA':>12}{'ours':>12}{'ratio':>9}")
        for name, theirs, mine in beside(ours.breakdown, hta.all_steps[rank]):
            line(name, theirs, mine, None, differs=False)
    return wrong


def differ(name: str, theirs: float, ours: float) -> bool:
    """Tell whether two figures are further apart than stamps allow that HTA holds as floats."""
    if math.isnan(theirs) and math.isnan(ours):  # overlap without communication
        return False
    return not abs(theirs - ours) <= max(TOLERANCE * abs(theirs), 0.01 if "%" in name else 1.0)


def line(name: str, theirs: float, ours: float, rounded: float | None, *, differs: bool) -> None:
    """Print one figure."""
    ratio = f"{ours / theirs:9.4f}" if theirs else " " * 9
    last = "" if rounded is None else f"{rounded:13.1f}"
    print(f"  {name:38}{theirs:12.1f}{ours:12.1f}{ratio}{last}{'  DIFFERS' if differs else ''}")


def beside(ours: Breakdown, theirs: Mapping[str, float]) -> Sequence[tuple[str, float, float]]:
    """Return what both say of the whole file: HTA by stream and activity, we by device and instant."""
    waits: dict[str, float] = defaultdict(float)
    for name, time in theirs.items():
        if name.startswith("idle, "):
            waits[name.rpartition(" ")[2]] += time
    host = sum(time for cause, time in ours.idle_ns.items() if cause not in NOT_THE_HOST)
    communication = ours.communication_ns or 1
    return (
        ("window", theirs["window"], ours.window_ns / 1e3),
        ("compute", theirs["compute"], ours.compute_ns / 1e3),
        ("not compute", theirs["not compute"], (ours.exposed_communication_ns + ours.copy_ns) / 1e3),
        ("idle", theirs["idle"], ours.whole_idle_ns / 1e3),
        ("overlap %", theirs["overlap %"], 100 * ours.overlapped_ns / communication),
        ("idle for the host (HTA: all streams)", waits["host_wait"], host / 1e3),
        ("idle for others (HTA: all streams)", waits["kernel_wait"] + waits["other"],
         (ours.whole_idle_ns - host) / 1e3),
    )  # fmt: skip


def main() -> int:
    """Return 1 where a figure that both define alike differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hta-python", required=True, help="an interpreter that has HTA 0.5.0")
    parser.add_argument("folders", nargs="+", type=Path, help="folders of one job each, a file a rank")
    options = parser.parse_args()
    wrong = [folder for folder in options.folders if report(folder, options.hta_python)]
    print("\nEvery figure that both define alike agrees within 1 %." if not wrong else f"\nNot so: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
