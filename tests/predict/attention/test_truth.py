"""Counts held against calls that were run on an H200 and predicted from their parameters alone."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from tracehunch.kernels import classify
from tracehunch.predict.attention import VARIANTS, predict_attention
from tracehunch.predict.sdpa import call_from_row, tensor

CHOSEN = {"FLASH_ATTENTION": 6, "EFFICIENT_ATTENTION": 47, "CUDNN_ATTENTION": 64, "MATH": 91}
PRODUCTS = ("gemm", "gemv", "dot", "splitk-reduce")


@pytest.fixture(scope="module")
def variants(truth, measured_env):
    """Rows of one forward each, with what is predicted of it."""
    return [
        (row, predict_attention(row["variant"], call_from_row(row), measured_env))
        for row in truth("attention_activities")
    ]


@pytest.fixture(scope="module")
def executed(truth, measured_env):
    """Rows of the grid that carry kernels, with what is predicted of them."""
    deterministic = replace(measured_env, deterministic=True, warn_only=True)
    return [
        (
            row,
            predict_attention("auto", _call(row), deterministic if row["deterministic"] else measured_env),
        )
        for row in truth("sdpa_grid")
        if "kernels" in row
    ]


@pytest.mark.parametrize("variant", VARIANTS)
def test_kernels_and_copies_of_every_variant(variants, counts, variant):
    ours = [(row, found) for row, found in variants if row["variant"] == variant]
    assert len(ours) == 45
    right = sum(
        found.raises == row["error"]
        if "error" in row
        else replace(counts.of_names(_names(row)), memsets=0) == replace(counts.of(found), memsets=0)
        for row, found in ours
    )
    assert right >= 0.97 * len(ours)


def test_memsets(variants, counts):
    right = sum(
        found.raises == row["error"]
        if "error" in row
        else counts.of_names(_names(row)).memsets == found.memsets
        for row, found in variants
    )
    assert right >= 0.85 * len(variants)


def test_errors(variants):
    assert sum("error" in row for row, _ in variants) == 26
    assert all(found.raises == row.get("error") for row, found in variants)


@pytest.mark.parametrize("chosen", CHOSEN)
def test_kernels_of_the_chosen_backend(executed, counts, chosen):
    ours = [
        (counts.of_names(row["kernels"]).kernels, found.kernel_count)
        for row, found in executed
        if row["chosen"] == chosen
    ]
    assert len(ours) == CHOSEN[chosen]
    exact = sum(seen == expected for seen, expected in ours)
    near = sum(expected is not None and abs(seen - expected) <= 1 for seen, expected in ours)
    if chosen == "MATH":
        assert near >= 0.9 * len(ours)
    else:
        assert exact >= 0.98 * len(ours)


def test_copies_of_the_grid(executed, counts):
    wrong = [row for row, found in executed if counts.of_names(row["kernels"]).copies != found.copy_count]
    assert len(wrong) <= 0.02 * len(executed)


def test_memsets_of_fused_backends_in_the_grid(executed, counts):
    fused = [(row, found) for row, found in executed if row["chosen"] != "MATH"]
    wrong = [row for row, found in fused if counts.of_names(row["kernels"]).memsets != found.memsets]
    assert len(fused) == 117
    assert wrong == []


def test_who_the_kernels_are(variants, executed):
    """Library, algorithm and a piece of the name, of every kernel that is no matrix product."""
    total, wrong = 0, Counter()
    for row, found in (*variants, *executed):
        names = [name for name in _names(row) if not name.startswith("Mem")]
        if len(names) != found.kernel_count:
            continue
        for name, guess in zip(names, found.kernels, strict=True):
            seen = classify(name)
            if seen.algorithm in PRODUCTS:
                continue
            total += 1
            cut = "(anonymous nam" in name and "kernel_impl" not in name.split("(anonymous", 1)[1]
            named = cut or _plain(guess.hint) in _plain(name)
            same = (seen.library, seen.algorithm) == (guess.library, guess.algorithm)
            if not (same and named and seen.dtype in (None, guess.dtype)):
                wrong[name[:80], guess] += 1
    assert total > 2_400
    assert not wrong


def _call(row):
    """Give masks the shapes that the launched kernels show: only `bool` has every batch and head."""
    call = call_from_row(row)
    if row["mask"] in (None, "bool"):
        return call
    return replace(call, mask=tensor((row["S"], row["Sk"]), call.mask.dtype))


def _names(row):
    return row.get("kernels") or [name for name, _ in row.get("activities", ())]


def _plain(name):
    return re.sub(r"pytorch_flash::", "", name)
