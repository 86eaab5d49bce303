"""How fast tracehunch is, and how much memory it takes, beside its peers, in one run.

    python benchmarks/speed.py --sizes 1,10,100                                   no peers needed, minutes
    python benchmarks/speed.py --peer hta=VENV/bin/python --peer tracelens=... --peer tb=... --peer plain=...
    python benchmarks/speed.py ... --full                                         every combination, an hour

Whole processes are timed, by turns, on at most --cores CPUs, after their files were read once. A program
whose runs took --patience seconds together is not run again; one that takes --timeout is ended. Peers are
run by the Python named with --peer (`plain`: one with orjson and msgspec); docs/benchmarks.md says how to
install them. Exits 1 if a goal is missed that was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from speed_cases import PARTS, RANKS_MB, Plan, cases, files
from speed_goals import goal_table, goals
from speed_runs import Run, measured, warm
from speed_table import Result, details, tables
from speed_traces import make, make_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from speed_cases import Case

ROOT: Final = Path(__file__).parents[1]
DISTRIBUTIONS: Final = {
    "hta": ("HolisticTraceAnalysis", "pandas"),
    "tracelens": ("TraceLens",),
    "tb": ("torch_tb_profiler",),
    "plain": ("orjson", "msgspec"),
}
BEGIN, END = "<!-- speed: begin -->", "<!-- speed: end -->"


def timed(group: Sequence[Case], rounds: int, patience_s: float, timeout_s: float) -> list[Result]:
    """Run the cases of a group by turns."""
    runs: dict[Case, list[Run]] = {case: [] for case in group}
    warm(tuple(dict.fromkeys(path for case in group for path in case.reads)))
    for _ in range(rounds):
        for case, done in runs.items():
            if any(run.problem for run in done) or sum(run.seconds for run in done) > patience_s:
                continue
            done.append(measured(list(case.command), timeout_s))
            last = done[-1]
            told = last.problem or f"{last.seconds:.2f} s, {last.peak_bytes / 1e6:.0f} MB"
            print(f"  {case.part}, {case.what}, {case.program}: {told}", file=sys.stderr, flush=True)
    return [Result(case, tuple(done)) for case, done in runs.items()]


def groups(found: Iterable[Case]) -> list[list[Case]]:
    """Return cases by what they are compared on."""
    by_group: dict[tuple[str, str], list[Case]] = {}
    for case in found:
        by_group.setdefault(case.group, []).append(case)
    return list(by_group.values())


def machine(pythons: dict[str, str], cores: int) -> str:
    """Return a line about what everything ran on, and one about versions."""
    versions = [f"tracehunch {_version(sys.executable, 'tracehunch')}"]
    for name, python in pythons.items():
        versions += [f"{what} {_version(python, what)}" for what in DISTRIBUTIONS[name]]
    return (
        f"{_processor()}, {cores} cores, Python {platform.python_version()}, {time.strftime('%B %Y')}. "
        f"{', '.join(versions)}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")


def _version(python: str, distribution: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


def report(plan: Plan, results: Sequence[Result], cores: int) -> tuple[str, bool]:
    """Return everything as Markdown, and whether no goal was missed."""
    sizes = {trace.words: (plan.folder / trace.name).stat().st_size for trace in files(plan)}
    found = goals(results, sizes)
    text = "\n\n".join([machine(dict(plan.pythons), cores), goal_table(found), tables(results)])
    return text, not any(goal.reached is False for goal in found)


def into(page: Path, text: str) -> None:
    """Put text between the markers of a page."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{page} has no {BEGIN} ... {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {','.join(PARTS)}")
    parser.add_argument("--sizes", default="1,10,100,500", help="MB of JSON")
    parser.add_argument("--trace", type=Path, help="repeat this one (default: as big.py says)")
    parser.add_argument("--ranks", type=int, default=8, help="ranks of the job")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=20, metavar="S")
    parser.add_argument("--timeout", type=float, default=300, metavar="S")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--full", action="store_true", help="peers on every combination")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "tracehunch-speed",
        help="keeps the traces",
    )
    parser.add_argument("--docs", type=Path, help="write the tables between the markers of this page")
    parser.add_argument("--json", type=Path, help="write every run to this file")
    given = parser.parse_args()
    given.parts = given.parts.split(",")
    given.sizes = [float(size) for size in given.sizes.split(",")]
    given.pythons = dict(peer.split("=", 1) for peer in given.peer if "=" in peer)
    for name, python in given.pythons.items():
        if name not in DISTRIBUTIONS or not Path(python).is_file():
            parser.error(
                f"--peer {name}={python}: give {', '.join(DISTRIBUTIONS)} and the path of its Python"
            )
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return given


def prepared(given: argparse.Namespace) -> Plan:
    """Make the traces that are missing."""
    given.folder.mkdir(parents=True, exist_ok=True)
    plan = Plan(given.parts, given.sizes, given.pythons, given.folder.resolve(), given.ranks, given.full)
    make(plan.folder, files(plan), given.trace)
    if "ranks" in plan.parts:
        recorded = sorted((ROOT / "tests" / "data" / "h200" / "ranks" / "ddp").glob("*.json.gz"))
        make_ranks(plan.job, recorded, plan.ranks, RANKS_MB)
    return plan


def main() -> int:
    """Run everything that was asked for."""
    given = arguments()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
    for name in sorted(set(DISTRIBUTIONS) - set(given.pythons)):
        print(f"  without {name}: no --peer {name}=PYTHON", file=sys.stderr)
    plan = prepared(given)
    measured([sys.executable, "-m", "tracehunch", "--version"], given.timeout)  # compiles what is not yet
    results: list[Result] = []
    for group in groups(cases(plan)):
        results += timed(group, given.rounds, given.patience, given.timeout)
    text, reached = report(plan, results, given.cores)
    print(f"{details(results)}\n\n{text}")
    if given.json:
        given.json.write_text(json.dumps([asdict(result) for result in results], default=str, indent=1))
    if given.docs:
        into(given.docs, text)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
