"""2,605 random calls on an H200 (torch 2.11) whose tensors have odd strides, offsets and masks.

They were made and executed after `sdpa_kernel(set_priority=True)` had been left, which put flash first for
good.
"""

import json
from dataclasses import replace

import pytest

from tracehunch.predict.environment import environment
from tracehunch.predict.sdpa import SdpaCall, TensorSpec, predict_sdpa
from tracehunch.predict.sdpa.rows import SDP_NAMES


def spec(given):
    return TensorSpec(
        shape=tuple(given["shape"]),
        stride=tuple(given["stride"]),
        dtype=given["dtype"],
        storage_offset=given["offset"],
        requires_grad=given["grad"],
    )


@pytest.fixture(scope="module")
def answered(tensors):
    machine, *rows = map(json.loads, tensors)
    env = replace(environment("h200", machine["torch"], machine["cudnn"]), order=tuple(machine["order"]))
    found = []
    for row in rows:
        call = SdpaCall(
            q=spec(row["q"]),
            k=spec(row["k"]),
            v=spec(row["v"]),
            mask=spec(row["mask"]) if "mask" in row else None,
            dropout=row["dropout"],
            is_causal=row["causal"],
            enable_gqa=row["gqa"],
        )
        found.append((row, predict_sdpa(call, replace(env, deterministic=row["deterministic"]))))
    return found


def test_the_choice_is_pytorchs(answered):
    assert len(answered) == 2605
    assert [row for row, picked in answered if SDP_NAMES[picked.chosen] != row["chosen"]] == []


def test_the_errors_are_pytorchs(answered):
    assert sum("run_error" in row for row, _ in answered) > 800
    assert [row for row, picked in answered if picked.raises != row.get("run_error")] == []
