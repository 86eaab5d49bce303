"""Counts held against operations and products of random shapes, with the scripts that fit to them."""

from collections import defaultdict

import pytest

measured_ops = pytest.importorskip("measured_ops")
fit_products = pytest.importorskip("fit_products")


def test_operations_of_random_shapes(h200, guessed):
    right = defaultdict(list)
    for index, one in enumerate(measured_ops.measured_ops()):
        if one.op in measured_ops.NAMES and index % 3 == 0:
            right[one.op].append(guessed(one.predicted(h200)) == one.counts)
    everything = [each for values in right.values() for each in values]
    assert len(right) > 140
    assert len(everything) > 3000
    assert sum(everything) / len(everything) >= 0.995


def test_every_aligned_product_of_half_precision_runs_nvjet_and_no_other_does():
    for one in fit_products.measured():
        if one.product.dtype != "fp32":
            assert one.product.aligned == one.is_nvjet, one


def test_nvjet_kernels_of_shapes_left_out_of_the_fit():
    from tracehunch.predict.ops.gemm.nvjet import choose  # noqa: PLC0415  # with numpy

    right, sure = [], []
    for one in fit_products.measured():
        if one.is_nvjet and one.part % 2 and one.part != 7:
            found = choose(one.product, 132)
            outcome = (2, 0) if found.splits > 1 else (1, int(found.memset))
            right.append(outcome == one.outcome)
            if found.certainty >= 0.9:
                sure.append(outcome == one.outcome)
    assert len(right) > 2500
    assert sum(right) / len(right) >= 0.945
    assert sum(sure) / len(sure) >= 0.97


def test_batches_of_other_products_run_one_kernel():
    from tracehunch.predict.ops.gemm.branches import outcome  # noqa: PLC0415  # loaded only where it is needed

    batched = [one for one in fit_products.measured() if one.product.batch > 1 and not one.is_nvjet]
    right = [one.outcome == (1, 0) and outcome(one.product).kernels == 1 for one in batched]
    assert len(right) > 2000
    assert sum(right) / len(right) >= 0.99


def test_trees_of_shapes_left_out():
    rows = [
        one
        for one in fit_products.measured()
        if one.product.batch == 1
        and not one.is_nvjet
        and one.product.dtype != "fp32"
        and not one.product.is_vector
    ]
    some = [one for one in rows if one.product.route == "lt"]
    assert fit_products.left_out(some) >= 0.82


def test_the_shipped_trees_are_those_that_the_script_grows():
    from tracehunch.predict.ops.gemm.branches import trees  # noqa: PLC0415  # loaded only where it is needed

    name = "fp32_vector"
    rows = [
        one
        for one in (*fit_products.measured(), *fit_products.more())
        if one.product.batch == 1 and not one.is_nvjet and fit_products.family(one.product) == name
    ]
    tree, shipped = fit_products.grown(rows, range(fit_products.PARTS)), trees()[name]
    assert (tree.feature, tree.threshold) == (shipped.feature, shipped.threshold)


def test_products_measured_later_were_foretold_by_trees_of_the_others():
    rows = [
        one
        for one in fit_products.more()
        if fit_products.family(one.product) == "fp32_lt" and one.product.batch == 1
    ]
    assert len(rows) > 3900
    assert fit_products.left_out(rows) >= 0.9
