"""How often predicted choices, errors and activities agree with what an H200 did (torch 2.11, cuDNN 9.19).

    python benchmarks/prediction_counts.py

The calls are those of `tests/data/truth`: random SDPA calls and what PyTorch chose, one forward of each
variant and what it ran, common operations and what they ran.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tracehunch.predict.bulk import predict_attention_rows, predict_sdpa_rows
from tracehunch.predict.environment import environment
from tracehunch.predict.ops.samples import predict_row

TRUTH = Path(__file__).parents[1] / "tests" / "data" / "truth"
ENVIRONMENT = environment(gpu="h200", torch="2.11", cudnn=91900)
CHOICES = ("chosen", "flash", "efficient", "cudnn")
COUNTS = ("kernels", "copies", "memsets")


def lines_of(name: str) -> list[str]:
    """Return the lines of a truth file without its first, the machine."""
    with gzip.open(TRUTH / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return file.read().splitlines()[1:]


def counted(activities: list[Any]) -> dict[str, int]:
    """Return how many kernels, copies and memsets a list of names (or name, us) holds."""
    names = [entry if isinstance(entry, str) else entry[0] for entry in activities]
    copies = sum(name.startswith("Memcpy") for name in names)
    memsets = sum(name.startswith("Memset") for name in names)
    return {"kernels": len(names) - copies - memsets, "copies": copies, "memsets": memsets}


def report(title: str, right: Counter[str], total: Counter[str]) -> None:
    """Print one line per figure."""
    print(title)
    for key in total:
        print(f"  {key:34} {right[key]:5} of {total[key]:5}  {right[key] / total[key]:6.1%}")


def sdpa() -> None:
    """Choices and errors, and the activities of the calls that carry them, by backend."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for row in map(json.loads, predict_sdpa_rows(lines_of("sdpa_grid_h200"), ENVIRONMENT)):
        said = row["predicted"]
        for key in CHOICES:
            total[key] += 1
            right[key] += said[key] == row[key]
        if "kernels" in row or "run_error" in row:
            total["raises, executed calls"] += 1
            right["raises, executed calls"] += bool(said["raises"]) == ("run_error" in row)
        if "kernels" in row:
            seen = counted(row["kernels"])
            key = f"activities, {row['chosen'].split('_')[0].lower()}"
            total[key] += 1
            right[key] += all(said[part] == seen[part] for part in COUNTS)
    report("SDPA calls", right, total)


def variants() -> None:
    """One forward of each variant: what it ran, or that it raised."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for row in map(json.loads, predict_attention_rows(lines_of("attention_activities_h200"), ENVIRONMENT)):
        said = row["predicted"]
        total["raises"] += 1
        right["raises"] += bool(said["raises"]) == ("activities" not in row)
        if "activities" in row:
            for key, seen in counted(row["activities"]).items():
                total[key] += 1
                right[key] += said.get(key) == seen
    report("attention's variants", right, total)


def operations() -> None:
    """Count the operations with all activities right; a cannot-tell counts as wrong."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for row in map(json.loads, lines_of("op_kernels_h200")):
        if "activities" not in row:
            continue
        said = predict_row(row, ENVIRONMENT)
        seen = counted(row["activities"])
        told = (said.kernel_count, said.copy_count, said.memsets)
        products = any(word in row["op"] for word in ("mm", "linear", "matmul"))
        key = "matrix products" if products else "other operations"
        total[key] += 1
        right[key] += told == tuple(seen[part] for part in COUNTS)
    report("operations", right, total)


def main() -> int:
    """Print all figures."""
    sdpa()
    variants()
    operations()
    return 0


if __name__ == "__main__":
    sys.exit(main())
