"""What is expected of an attention variant: which called ops lead, what moves, and for how long."""

import gzip
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from tracehunch.predict.activities import Activities, Spent
from tracehunch.predict.environment import environment
from tracehunch.predict.forecast import forecast, leaders, shares
from tracehunch.predict.roofline import AttentionTime, NoEstimate
from tracehunch.predict.sdpa import sdpa_call

TESTS = Path(__file__).parents[1]
H200 = environment("h200", "2.11", 91900)
SEED = sdpa_call(8, 16, 1024, 64, is_causal=True)
GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def time_by_outer_op(path, scope):
    """GPU microseconds by the outermost op that launched them, inside the annotations of a name."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    spans = [(e["ts"], e["ts"] + e["dur"], e["tid"]) for e in events if e.get("name") == scope]
    took = Counter()
    for event in events:
        if event.get("cat") in GPU:
            took[event["args"]["correlation"]] += event["dur"]
    ops = [e for e in events if e.get("cat") == "cpu_op"]
    found = Counter()
    for call in events:
        if (
            call.get("cat") not in ("cuda_runtime", "cuda_driver")
            or call["args"].get("correlation") not in took
        ):
            continue
        start, thread = call["ts"], call["tid"]
        if any(first <= start < last and thread == tid for first, last, tid in spans):
            around = [op for op in ops if op["tid"] == thread and op["ts"] <= start < op["ts"] + op["dur"]]
            found[max(around, key=lambda op: op["dur"])["name"]] += took[call["args"]["correlation"]]
    return found


@pytest.mark.parametrize("variant", ["naive", "naive_inplace", "sdpa_math", "sdpa_flash", "sdpa_cudnn"])
def test_shares_are_those_of_a_recorded_seed(variant):
    scope = "sdpa_fwd" if variant.startswith("sdpa") else "attn_fwd"
    seen = time_by_outer_op(TESTS / "data" / "h200" / "seeds" / f"{variant}.json.gz", scope)
    assert seen
    told = dict(shares(forecast(variant, SEED, H200, clock="gpu").forward))
    assert [op for op, _ in seen.most_common()] == list(told)
    for op, us in seen.items():
        assert told[op] == pytest.approx(us / seen.total(), abs=0.03)


def test_leaders_named_for_sure_are_right(monkeypatch):
    monkeypatch.syspath_prepend(str(TESTS.parent / "benchmarks"))
    sys.modules.pop("leaders", None)
    import attention_truth  # noqa: PLC0415  # not installed
    import leaders as script  # noqa: PLC0415  # not installed

    found = script.agreement(attention_truth.activities())
    assert found["calls"] == found["first"] == found["first two"] == 88
    assert found["claimed and right"] == found["leaders claimed"] > 60


@pytest.mark.parametrize(
    ("us", "expected"),
    [
        ((50, 30, 10), ("a", "b", "c")),
        ((50, 30, 25), ("a",)),
        ((50, 45, 5), ()),
        ((100,), ("a",)),
        ((), ()),
    ],
)
def test_leaders_stop_where_two_are_close(us, expected):
    spent = tuple(Spent(op, each) for op, each in zip("abc", us, strict=False))
    assert leaders(Activities(spent=spent)) == expected


def test_shares_add_up_what_an_op_launches():
    found = shares(Activities(spent=(Spent("a", 1), Spent("b", 5), Spent("a", 2))))
    assert found == (("b", 0.625), ("a", 0.375))
    assert shares(Activities()) == ()


def test_bytes_of_attention_by_hand_are_those_of_its_steps():
    tensor, scores, mask = 8 * 16 * 1024 * 64 * 2, 8 * 16 * 1024 * 1024 * 2, 1024 * 1024
    # q k^T, scale, fill, softmax, p v: scores are read or written by each, in place no copy is made
    in_place = 4 * tensor + 8 * scores + mask
    assert forecast("naive_inplace", SEED, H200).hbm_bytes == in_place
    assert forecast("naive", SEED, H200).hbm_bytes == in_place + 2 * scores
    assert forecast("flash", SEED, H200).hbm_bytes == 4 * tensor


@pytest.mark.parametrize("variant", ["naive", "naive_inplace", "math", "efficient", "flash", "cudnn"])
def test_every_variant_is_timed_both_ways(variant):
    found = forecast(variant, SEED, H200, clock="gpu")
    assert isinstance(found.time, AttentionTime)
    assert isinstance(found.backward, AttentionTime)
    assert found.backward.mid_us > 0.8 * found.time.mid_us
    assert found.time.range.width <= 2
    assert found.forward.time == found.time.range
    assert sum(spent.us for spent in found.forward.spent) == pytest.approx(found.time.mid_us)


def test_another_version_is_less_sure_of_times():
    newer = forecast("flash", SEED, environment("h200", "2.13", 91900))
    assert isinstance(newer.time, AttentionTime)
    assert newer.time.confidence == "medium"


def test_what_raises_or_is_not_known_has_no_time():
    refused = forecast("flash", sdpa_call(1, 1, 64, 64, dtype="float32"), H200)
    assert isinstance(refused.time, NoEstimate)
    assert refused.forward.spent == ()
    assert isinstance(forecast("naive", SEED, environment(None, "2.11", device="cpu")).time, NoEstimate)
