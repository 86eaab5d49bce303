"""What overlaps a scope, found by looking near its calls, against a look at every piece."""

import numpy as np
import pytest

from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.checks._idle_frames import _frames
from tracehunch.checks._idle_scopes import most_specific
from tracehunch.trace.model import Cat
from tracehunch.tree import NONE

NAMES = ("models/llama_sdpa_train", "ranks/ddp/rank0", "situations/gpt_recompiles", "faults/two_streams")


@pytest.mark.parametrize("name", NAMES)
def test_pieces_inside_a_scope_are_those_with_some_time_in_it(facts_of, name):
    facts = facts_of(name)
    idle = idle_of(facts)
    assert len(idle)
    for scope in facts.scopes:
        for causes in ((), (IdleCause.LAUNCH, IdleCause.SYNC)):
            pieces = idle.of(*causes)
            assert np.array_equal(idle.inside(scope, *causes), pieces[idle.within_us(scope, pieces) > 0])


@pytest.mark.parametrize("name", NAMES)
def test_a_piece_belongs_to_the_shortest_annotation_that_holds_half_of_it(facts_of, name):
    facts = facts_of(name)
    idle = idle_of(facts)
    pieces = idle.of()[::3]
    found = most_specific(facts, idle, pieces)
    assert (found != NONE).any()
    order = {"whole": 0, "step": 1, "annotation": 2}
    holding = [[] for _ in pieces]
    for number, scope in enumerate(facts.scopes):
        if scope.scope.kind in order:
            calls = [call.end_ns - call.start_ns for call in scope.scope.calls]
            rank = (order[scope.scope.kind], -sum(calls) / len(calls), number)
            for at in np.flatnonzero(idle.within_us(scope, pieces) >= 0.5 * idle.length_us[pieces]).tolist():
                holding[at].append(rank)
    assert found.tolist() == [max(ranks)[2] if ranks else NONE for ranks in holding]


@pytest.mark.parametrize("name", ["models/llama_sdpa_train_stack", "seeds/stack_sdpa_flash"])
def test_frames_of_all_pieces_are_those_of_each(facts_of, name):
    tree = facts_of(name).tree
    trace, idle = tree.trace, idle_of(facts_of(name))
    pieces = idle.of()
    found = _frames(tree, idle, pieces)
    python = np.flatnonzero(trace.cat == Cat.PYTHON_FUNCTION)
    for piece, names in zip(pieces.tolist(), found, strict=True):
        start, end = idle.start_ns[piece], idle.end_ns[piece]
        rows = python[trace.process[python] == idle.process[piece]]
        overlap = np.minimum(trace.end_ns()[rows], end) - np.maximum(trace.start_ns[rows], start)
        rows = rows[overlap >= 0.8 * (end - start)]
        rows = rows[np.lexsort((-rows, trace.dur_ns[rows]))]
        assert names == [trace.name_of(row) for row in rows.tolist()]
