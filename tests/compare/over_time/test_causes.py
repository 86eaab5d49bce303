"""What a longer call is put down to, from the values on both sides of a change."""

from __future__ import annotations

import pytest

from tracehunch.compare.over_time import causes
from tracehunch.compare.over_time.calls import COLLECTIVE, OUTSIDE
from tracehunch.compare.over_time.model import COMPUTE, Drift, Level, Place, Shift
from tracehunch.compare.over_time.scene import Scene, Side


def scene(**more):
    """A call of 5 ms that takes 1.3 ms longer, with what else grew, in microseconds."""
    keys = {"outside": OUTSIDE, "collectives": COLLECTIVE, "compute": COMPUTE}
    before = {"wall_time": 5_000.0, "syncs": 1.0, "sync_time": 4_000.0, OUTSIDE: 4_100.0, COMPUTE: 4_000.0}
    before[COLLECTIVE] = 150.0
    after = before | {"wall_time": 6_300.0}
    for name, us in more.items():
        after[keys.get(name, name)] += us
    place = Place(0, 0, 0, 0)
    drifts = (Drift("step", "wall_time", "us", "step", (Level(place, place, 9, 5_000.0),) * 2),)
    shift = Shift("step", "step", drifts, place, 1_300.0, "warning")
    same = (object(),)
    sides = (Side({"gemm": 4.0}, {"gemm": 900.0}, values, same, {}) for values in (before, after))
    return Scene(shift, *sides, on_gpu=True)


@pytest.mark.parametrize(
    ("grown", "ids"),
    [
        ({"outside": 1_300.0}, ["outside-pytorch"]),
        ({"outside": 1_300.0, "sync_time": 1_290.0, "collectives": 1_300.0}, ["waits", "other-ranks"]),
        ({"outside": 1_300.0, "sync_time": 1_290.0}, ["waits"]),
        ({"outside": 1_300.0, "sync_time": 100.0}, ["outside-pytorch"]),
    ],
)
def test_a_host_that_waits_for_the_gpu_is_in_no_op_either_and_does_nothing_else(monkeypatch, grown, ids):
    made = scene(**grown)
    monkeypatch.setattr(causes, "scene_of", lambda *_: made)
    found = causes.causes_of(made.shift, None, ())
    assert [cause.id for cause in found] == ids
    assert all("once a call" in cause.text for cause in found if cause.id == "waits")
