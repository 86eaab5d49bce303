"""What the leaf ops of a CPU are, on recorded traces: 5 operations stay 5 among views and allocations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tracehunch.attention import VARIANTS
from tracehunch.attention.guesses import guess_of
from tracehunch.attention.leaves import BOOKKEEPING, leaf_text, leaves_of, with_bookkeeping, work_text
from tracehunch.attention.outcome import Device
from tracehunch.attention.workload import Workload
from tracehunch.guess import Claim, Guess
from tracehunch.judge import examine
from tracehunch.trace import read

CPU = Path(__file__).parents[1] / "data" / "cpu"
WORKLOAD = Workload(batch=1, heads=8, seq=512, head_dim=64, kv_heads=8)
BY_NAME = {variant.name: variant for variant in VARIANTS}


def look(name, *claims):
    variant = BY_NAME[name]
    guess = Guess(claims) if claims else guess_of(variant, WORKLOAD, Device("cpu", "CPU"))
    return with_bookkeeping(examine(read(CPU / f"{name}.json.gz"), (guess,)))


def leaves(name):
    facts = look(name).facts
    return leaves_of(facts.scope(BY_NAME[name].label), facts.tree)


@pytest.mark.parametrize(
    ("name", "total", "views", "casts", "workers"),
    [
        ("naive_inplace", 19, 16, 1, "bmm mul masked_fill_ _softmax bmm"),
        ("naive", 23, 19, 1, "bmm mul copy_ masked_fill_ _softmax bmm"),
        ("sdpa_flash", 10, 10, 0, "_scaled_dot_product_flash_attention_for_cpu"),
    ],
)
def test_the_operations_of_the_formula_are_found_among_the_bookkeeping(name, total, views, casts, workers):
    seen = leaves(name)
    assert (seen.total, seen.views.total(), seen.casts) == (total, views, casts)
    assert [worker.removeprefix("aten::") for worker in seen.workers] == workers.split()


def test_leaf_ops_are_counted_as_the_fact_counts_them():
    for name in ("naive", "naive_inplace", "sdpa_math", "sdpa_flash"):
        assert leaves(name).total == look(name).facts.scope(BY_NAME[name].label).value("leaf_ops")


def explained(name, *claims):
    return {one.claim.key: (one.explained_by, one.severity) for one in look(name, *claims).verdict.surprises}


def test_only_bookkeeping_beside_the_guessed_work_is_an_explained_note():
    assert explained("naive_inplace")["leaf_ops"] == ((BOOKKEEPING,), "note")
    assert explained("sdpa_flash")["leaf_ops"] == ((BOOKKEEPING,), "note")


def test_more_work_than_guessed_needs_a_finding_besides():
    ids, severity = explained("naive")["leaf_ops"]
    assert ids == ("hidden-copy", BOOKKEEPING)
    assert severity == "note"
    ids, _ = explained("sdpa_math")["leaf_ops"]
    assert "sdpa-math-fallback" in ids


def test_work_that_nothing_explains_stays_unexplained():
    four = Claim("leaf_ops", "==", 4, "attn_fwd", "textbook", unit="count")
    assert explained("naive_inplace", four)["leaf_ops"] == ((), "warning")
    six = replace(four, expected=6)  # less work than guessed is no bookkeeping either
    assert explained("naive_inplace", six)["leaf_ops"] == ((), "warning")


def test_a_user_who_missed_is_told_why_and_keeps_the_error():
    mine = Claim("leaf_ops", "==", 5, "attn_fwd", "user", unit="count")
    assert explained("naive_inplace", mine)["leaf_ops"] == ((BOOKKEEPING,), "error")


def test_texts_name_the_op_that_does_the_work():
    flash = leaves("sdpa_flash")
    assert leaf_text(flash).startswith("all 10 leaf ops only view or allocate (6 as_strided, 3 empty")
    assert work_text(flash) == (
        "the work is done by aten::_scaled_dot_product_flash_attention_for_cpu itself"
    )
    inplace = leaves("naive_inplace")
    assert leaf_text(inplace, named=False) == "16 of 19 leaf ops only view or allocate, 1 casts a number"
    assert work_text(inplace) == "the work is done by 5 ops: 2 bmm, mul, masked_fill_ and _softmax"
