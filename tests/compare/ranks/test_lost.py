"""Collectives that the profiler lost: what is left is matched rightly, or not at all."""

from __future__ import annotations

import json
import random

import pytest
from tests.compare.ranks.recorded import raw

from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.examine import examine


def with_losses(document, noise, *, steps):
    """Leave out a tenth of the kernels of collectives, and the steps."""
    events = [e for e in document["traceEvents"] if steps or not e["name"].startswith("ProfilerStep")]
    lost = {
        e["args"]["correlation"]
        for e in events
        if e.get("cat") == "kernel" and e["name"].startswith("nccl") and noise.random() < 0.1
    }
    kept = [e for e in events if e.get("cat") != "kernel" or e["args"].get("correlation") not in lost]
    return {**document, "traceEvents": kept}


@pytest.mark.parametrize("steps", [True, False], ids=["steps", "no steps"])
@pytest.mark.parametrize("seed", range(4))
def test_no_call_is_matched_with_another(tmp_path, steps, seed):
    noise = random.Random(seed)  # noqa: S311  # no secret: the same losses each time
    examined = []
    for number in (0, 1):
        path = tmp_path / f"rank{number}.json"
        path.write_text(json.dumps(with_losses(raw(f"h200/ranks/tp/rank{number}"), noise, steps=steps)))
        examined.append(examine(path))
    found = compare(examined)
    for one in found.matched:
        first, second = (int(examined[at].collectives.end_ns[one.rows[at]]) for at in (0, 1))
        assert abs(first - second) < 300_000  # they are GPUs of one host, with one clock
