"""Sums, rows, leaders and what cannot be told, of small programs counted by hand."""

import pytest

from tracehunch.predict.program import Obstacle, claims_of, guess_to_check
from tracehunch.predict.program.amounts import COMMON

HALF = ((4096, 4096), "bf16")


def test_rows_are_by_innermost_op_and_module(make, guess):
    cast = make(
        "aten::_to_copy", HALF, out=[((4096, 4096), "fp32")], module="norm", options={"dtype": "fp32"}
    )
    mask = make("aten::masked_fill", HALF, ((4096, 4096), "bool"), out=[HALF], module="attn")
    found = guess(cast, mask, mask)
    rows = {(row.op, row.module): (row.amounts.kernels, row.amounts.copies) for row in found.ops}
    assert rows == {
        ("aten::copy_", "norm"): (1, 0),
        ("aten::copy_", "attn"): (0, 2),
        ("aten::masked_fill_", "attn"): (2, 0),
    }
    assert found.totals.amounts.kernels == 3
    assert {row.module: row.amounts.calls for row in found.modules} == {"": 3, "norm": 1, "attn": 2}


def test_calls_of_one_op_err_together_and_ops_independently(make, guess):
    one, other = make("aten::neg", HALF, out=[HALF]), make("aten::mm", HALF, HALF, out=[HALF])
    alone, four, both = guess(one), guess(one, one, one, one), guess(one, other)
    time = alone.totals.amounts.time
    assert four.totals.amounts.time.low_us == pytest.approx(4 * time.low_us)
    parts = [call.activities.time for call in both.calls]
    below = sum((part.mid_us - part.low_us) ** 2 for part in parts) ** 0.5
    middle = sum(part.mid_us for part in parts)
    assert both.totals.amounts.time.low_us == pytest.approx(middle - below - COMMON * middle)


def test_what_is_not_known_makes_totals_at_least(make, guess):
    found = guess(make("aten::neg", HALF, out=[HALF]), make("aten::linalg_qr", HALF, line="fit.py:3"))
    assert found.totals.at_least
    assert (found.totals.amounts.kernels, found.totals.amounts.untold) == (1, 1)
    (untold,) = found.cannot_tell
    assert (untold.op, untold.count, untold.line) == ("aten::linalg_qr", 1, "fit.py:3")
    assert "kernels" in untold.open
    assert {claim.relation for claim in claims_of(found) if claim.key == "kernels"} == {">="}


def test_an_obstacle_that_stops_leaves_all_that_follows_open(make, guess):
    stop = Obstacle("a value decides", "gate", "moe.py:9", stops=True)
    found = guess(make("aten::neg", HALF, out=[HALF]), obstacles=(stop,))
    assert found.totals.at_least
    assert found.cannot_tell[0].open == ("all that follows",)


def test_nothing_runs_on_the_gpu_for_tensors_on_the_host(make, guess):
    found = guess(make("aten::neg", HALF, out=[HALF], devices=("cpu",), output_devices=("cpu",)))
    assert found.totals.amounts.kernels == 0
    assert not found.ops


def test_copies_to_the_gpu_convert_on_the_host_first(make, guess):
    up = make(
        "aten::_to_copy", ((1024, 1024), "fp64"), out=[((1024, 1024), "fp32")], devices=("cpu",),
        options={"dtype": "fp32", "device": "cuda"},
    )  # fmt: skip
    free = make(
        "aten::_to_copy", ((1024, 1024), "fp64"), out=[((1024, 1024), "fp32")], devices=("cpu",),
        options={"dtype": "fp32", "device": "cuda", "non_blocking": True},
    )  # fmt: skip
    assert guess(up).calls[0].activities.copies == ("htod",)
    assert guess(up).calls[0].activities.kernel_count == 0
    assert guess(free).calls[0].activities.kernel_count == 1


def test_many_small_kernels_wait_for_launches_and_large_ones_do_not(make, guess):
    small = make("aten::neg", ((64, 64), "bf16"), out=[((64, 64), "bf16")])
    large = make(
        "aten::mm", ((16384, 16384), "bf16"), ((16384, 16384), "bf16"), out=[((16384, 16384), "bf16")]
    )
    assert guess(*[small] * 50).totals.bound == "launch"
    assert guess(large).totals.bound == "gpu"


def test_leaders_and_claims_say_what_is_clear(make, attention, guess):
    products = [make("aten::mm", HALF, HALF, out=[HALF], module="fc", module_type="Linear")] * 4
    found = guess(*products, make("aten::neg", HALF, out=[HALF]), attention(4, 16, 1024, 64, is_causal=True))
    assert (found.leaders[0].op, found.leaders[0].clear) == ("aten::mm", True)
    claims = {claim.key: claim for claim in guess_to_check(found).claims}
    assert claims["sdpa.backend"].expected == "cudnn"
    assert claims["dominant"].expected == ("aten::linear",)
    assert (claims["kernels"].relation, claims["kernels"].expected) == ("==", 6)
    low, high = claims["gpu_time"].expected
    assert low < found.totals.amounts.gpu_time_us < high


def test_claims_of_an_annotation_are_of_its_calls(make, guess):
    inside = make("aten::neg", HALF, out=[HALF], scopes=("forward",))
    found = guess(inside, inside, make("aten::neg", HALF, out=[HALF]))
    assert next(claim.expected for claim in claims_of(found, "forward") if claim.key == "kernels") == 2
    assert next(claim.expected for claim in claims_of(found) if claim.key == "kernels") == 3
    assert claims_of(found, "backward") == ()


def test_sdpa_says_why_other_backends_refuse(attention, guess):
    found = guess(attention(2, 16, 512, 64, kv_heads=4, dtype="float32", enable_gqa=True, is_causal=True))
    (one,) = found.sdpa
    assert one.backend == "math"
    assert any(reason.startswith("flash") for reason in one.reasons)
    assert one.call == "q (2,16,512,64), k (2,4,512,64), fp32, causal, enable_gqa"


def test_products_in_tf32_are_timed_so_and_leave_memsets_open(make, guess):
    product = make("aten::mm", ((4096, 4096), "fp32"), ((4096, 4096), "fp32"), out=[((4096, 4096), "fp32")])
    slow, fast = guess(product), guess(product, settings={"float32_matmul_precision": "high"})
    assert fast.totals.amounts.kernels == 1
    assert fast.totals.amounts.gpu_time_us < slow.totals.amounts.gpu_time_us / 3
    assert [one.open for one in fast.cannot_tell] == [("memsets",)]
    assert all(one.remedy for one in fast.cannot_tell)


def test_a_run_that_stops_claims_only_what_is_at_least(make, guess):
    call = make("aten::add", ((64,), "fp32"), out=[((64,), "fp32")])
    stop = Obstacle("a value decides", "", "a.py:3", stops=True, remedy="--values")
    keys = {claim.key for claim in guess_to_check(guess(call, obstacles=(stop,))).claims}
    assert "sdpa.backend" in {claim.key for claim in guess_to_check(guess(call)).claims}
    assert keys == {"kernels", "copies", "memsets", "gpu_time"}


def test_obstacles_that_differ_in_the_module_are_one(make, guess):
    call = make("aten::add", ((64,), "fp32"), out=[((64,), "fp32")])
    where = [f"layers.{at}" for at in range(3)]
    same = [Obstacle("passed over", one, "a.py:3", stops=False, remedy="--compile") for one in where]
    (told,) = guess(call, obstacles=same).cannot_tell
    assert (told.count, told.modules) == (3, tuple(where))
