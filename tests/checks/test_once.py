"""What checks remember of a trace: that it is remembered, for each trace, and forgotten with it."""

import gc
import weakref
from pathlib import Path

import numpy as np

from tracehunch import checks
from tracehunch.checks._once import once
from tracehunch.facts import measure
from tracehunch.trace import read
from tracehunch.tree import link

DATA = Path(__file__).parents[1] / "data" / "h200"


def facts_anew(name):
    return measure(link(read(DATA / f"{name}.json.gz")))


def test_a_trace_is_worked_out_once(facts_of):
    asked = []
    rows = once(lambda facts: asked.append(facts.tree.trace.label) or np.arange(3))
    naive, flash = facts_of("seeds/naive"), facts_of("seeds/sdpa_flash")
    assert rows(naive) is rows(naive)
    assert rows(flash) is not rows(naive)
    assert asked == [naive.tree.trace.label, flash.tree.trace.label]


def test_nothing_keeps_a_trace_when_all_checks_have_run():
    for name in ("seeds/naive", "models/llama_sdpa_train", "faults/two_streams"):
        facts = facts_anew(name)
        checks.run(facts)
        gone = weakref.ref(facts.tree.ownership)
        del facts
        gc.collect()
        assert gone() is None, name
