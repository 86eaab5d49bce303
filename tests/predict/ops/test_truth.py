"""Counts and times held against what was measured, none of it used in a fit."""

from collections import Counter
from statistics import median

import pytest

from tracehunch.kernels import classify
from tracehunch.predict.ops.samples import predict_row

PRODUCTS = {"mm", "addmm", "linear", "linear_bias", "bmm", "bmm_t", "matmul4d_t"}


@pytest.fixture(scope="module")
def rows(truth, h200):
    return [(row, predict_row(row, h200)) for row in truth("op_kernels")]


def names(row):
    return [name for name, _ in row["activities"]]


def exact(rows, seen, guessed):
    return sum(guessed(found) == seen(names(row)) for row, found in rows) / len(rows)


def test_operations_that_are_no_matrix_products(rows, seen, guessed):
    others = [pair for pair in rows if pair[0]["op"] not in PRODUCTS]
    assert len(others) == 524
    assert exact(others, seen, guessed) >= 0.97


def test_matrix_products(rows, seen, guessed):
    products = [pair for pair in rows if pair[0]["op"] in PRODUCTS]
    answered = [found.memsets is not None and found.kernel_count is not None for _, found in products]
    assert len(products) == 73
    assert exact(products, seen, guessed) >= 0.85
    assert sum(answered) / len(answered) >= 0.85


def test_products_on_tensor_cores_with_aligned_strides(rows, seen, guessed):
    aligned = [
        pair for pair in rows if pair[0]["op"] in PRODUCTS and any("nvjet" in n for n in names(pair[0]))
    ]
    assert len(aligned) > 30
    assert exact(aligned, seen, guessed) >= 0.95


def test_high_confidence_is_earned(rows, seen, guessed):
    sure = [pair for pair in rows if pair[1].confidence == "high"]
    assert len(sure) > 0.9 * len(rows)
    assert exact(sure, seen, guessed) >= 0.99


def test_hints_are_in_the_names_and_libraries_are_right(rows):
    wrong = Counter()
    for row, found in rows:
        kernels = [name for name in names(row) if not name.startswith("Mem")]
        if found.kernels is None or len(kernels) != len(found.kernels) or row["op"] == "conv2d":
            continue
        for name, guess in zip(kernels, found.kernels, strict=True):
            wrong["all"] += 1
            wrong["hint"] += guess.hint not in name and "nvjet" not in guess.hint and len(name) < 139
            identity = classify(name)
            known = identity.classified and len(name) < 100
            wrong["library"] += known and guess.library not in {identity.library, "cub"}
    assert wrong["all"] > 500
    assert wrong["library"] / wrong["all"] < 0.03
    assert wrong["hint"] / wrong["all"] < 0.06


def test_times_of_products_above_50_us(truth, h200):
    off = []
    for row in truth("gemm_timing"):
        us = row["ms"] * 1e3
        if us > 50:
            time = predict_row(row, h200).time
            assert time is not None
            off.append(abs(time.mid_us / us - 1))
    assert len(off) == 42
    assert median(off) <= 0.12


def test_times_of_memory_bound_operations_above_10_us(truth, h200):
    off = []
    for row in truth("memory_timing"):
        us = row["ms"] * 1e3
        if us > 10:
            time = predict_row(row, h200).time
            assert time is not None
            off.append(abs(time.mid_us / us - 1))
    assert len(off) == 54
    assert median(off) <= 0.2


def test_ranges_hold_what_was_measured(rows):
    inside = []
    for row, found in rows:
        us = sum(us for _, us in row["activities"])
        if us > 10 and found.time is not None:
            inside.append(found.time.low_us <= us <= found.time.high_us)
    assert len(inside) > 200
    assert sum(inside) / len(inside) >= 0.85
