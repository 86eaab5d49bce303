"""What many small answers cost: names told apart, backends and times predicted.

    python benchmarks/bulk.py [FOLDER]

FOLDER holds sdpa_grid_h200.jsonl and sdpa_timing_h200.jsonl, measured calls as lines of JSON; without it the
rows about lines are left out. Each is compared, in the same run, with reading and writing as many lines of
JSON, the least that any tool for such lines does.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracehunch.kernels import classify
from tracehunch.kernels.rule import all_rules
from tracehunch.predict.bulk import predict_attention_rows, predict_sdpa_rows
from tracehunch.predict.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS: Final = 3


def seconds(work: Callable[[], object]) -> float:
    """Return the least processor time of some rounds."""
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def names() -> list[str]:
    """Return kernel names of many tile sizes."""
    return [
        example.replace("64x", f"{number}x")
        for number in range(16, 144, 8)
        for rule in all_rules().rules
        for example in rule.examples
    ][:2_000]


def classified(wanted: list[str]) -> None:
    """Classify names as if none was met before."""
    classify.cache_clear()
    for name in wanted:
        classify(name)


def rows(folder: Path | None) -> Iterator[tuple[str, int, Callable[[], object]]]:
    """Give what is measured: its name, how many answers, the work."""
    wanted = names()
    yield "kernel names classified", len(wanted), lambda: classified(wanted)
    if folder is None:
        return
    env = environment("h200", torch="2.11", cudnn=91900)
    for name, file, predict in (
        ("calls of SDPA, backends and activities", "sdpa_grid_h200.jsonl", predict_sdpa_rows),
        ("calls of attention, times", "sdpa_timing_h200.jsonl", predict_attention_rows),
    ):
        lines = (folder / file).read_text().splitlines()
        yield name, len(lines), lambda predict=predict, lines=lines: list(predict(lines, env))


def main() -> int:
    """Print a line for each."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    line = json.dumps(
        {"q": [6, 8, 128, 64], "dtype": "bf16", "causal": True, "reasons": {"flash": ["x" * 40]}}
    )
    for name, count, work in rows(folder):
        took = seconds(work)
        plain = seconds(lambda count=count: [json.dumps(json.loads(line)) for _ in range(count)])
        print(f"{name:40} {count:6,}  {took:7.3f} s  {took / max(plain, 1e-9):8.1f} x as many lines of JSON")
    return 0


if __name__ == "__main__":
    sys.exit(main())
