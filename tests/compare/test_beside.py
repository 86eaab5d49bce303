"""What runs beside an activity on other streams: against the raw JSON."""

import pytest

from tracehunch.compare.beside import beside

RANK0, RANK1 = "h200/ranks/ddp/rank0", "h200/ranks/ddp/rank1"


def raw_share(events, name, n):
    """Part of the first so many kernels' time in which a collective on another stream runs, too."""
    kernels = [e for e in events if e.get("cat") == "kernel"]
    mine = sorted((e for e in kernels if e["name"] == name), key=lambda event: event["ts"])[:n]
    others = [e for e in kernels if "nccl" in e["name"]]
    shared = sum(
        max(min(a["ts"] + a["dur"], b["ts"] + b["dur"]) - max(a["ts"], b["ts"]), 0)
        for a in mine
        for b in others
    )
    return shared / sum(event["dur"] for event in mine)


def slower_product(changed):
    found = changed(RANK0, RANK1)
    products = (
        change
        for scope in found.scopes
        for change in scope.changes
        if change.kind == "slower" and change.at[-1] == "aten::mm"
    )
    return found, next(products)


def test_a_product_beside_a_collective_is_slower_for_it(changed, raw_events):
    found, change = slower_product(changed)
    (cause,) = [cause for cause in change.causes if cause.id == "beside"]
    assert "ncclDevKernel_AllReduce" in cause.text
    sides = (found.before, change.before, RANK0), (found.after, change.after, RANK1)
    for look, uses, name in sides:
        share = beside(look.facts.tree.trace, uses).share
        assert share == pytest.approx(raw_share(raw_events(name), uses[0].name, 32), abs=0.02)
    assert "same-kernel" not in {one.id for one in change.causes}


def test_ops_of_a_cpu_have_nothing_beside_them(changed):
    found = changed("cpu/naive", "cpu/naive_inplace")
    uses = [use for scope in found.scopes for change in scope.changes for use in change.after]
    assert uses
    assert beside(found.after.facts.tree.trace, uses) is None
