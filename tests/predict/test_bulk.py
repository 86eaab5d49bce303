"""Many calls at once: lines in, the same lines with `predicted` out, held against what an H200 did."""

import gzip
import json
import statistics
from pathlib import Path

import pytest

from tracehunch.errors import GuessError
from tracehunch.predict.bulk import predict_attention_rows, predict_sdpa_rows
from tracehunch.predict.environment import environment

TRUTH = Path(__file__).parents[1] / "data" / "truth"
ROW = {"B": 2, "H": 8, "S": 1024, "Sk": 1024, "D": 64, "causal": True, "dtype": "bfloat16"}
TIMES = ("gpu_time_us", "low_us", "high_us", "bwd_us", "bwd_low_us", "bwd_high_us")


def read(name):
    with gzip.open(TRUTH / f"{name}_h200.jsonl.gz", "rt", encoding="utf-8") as file:
        return list(file)


def counts(names):
    copies = sum(name.startswith("Memcpy") for name in names)
    memsets = sum(name.startswith("Memset") for name in names)
    return len(names) - copies - memsets, copies, memsets


@pytest.fixture(scope="module")
def env():
    return environment("h200", "2.11", 91900)


@pytest.fixture(scope="module")
def timed(env):
    return [json.loads(line) for line in predict_attention_rows(read("sdpa_timing"), env)]


def one(row, env, **options):
    (line,) = predict_attention_rows([json.dumps(row)], env, **options)
    return json.loads(line)["predicted"]


def test_the_grid_is_answered_with_counts(env):
    lines = read("sdpa_grid")
    answered = [json.loads(line) for line in predict_sdpa_rows(lines, env)]
    assert json.dumps(answered[0]) == lines[0].strip()
    assert len(answered) == 3001
    for row in answered[1:]:
        assert [row["predicted"][key] for key in ("chosen", "flash", "efficient", "cudnn")] == [
            row[key] for key in ("chosen", "flash", "efficient", "cudnn")
        ]
        if "kernels" in row or "run_error" in row:
            assert row["predicted"]["raises"] == row.get("run_error")
    ran = [row for row in answered if isinstance(row.get("kernels"), list)]
    kernels, copies, _ = zip(*(counts(row["kernels"]) for row in ran), strict=True)
    assert sum(row["predicted"]["kernels"] == seen for row, seen in zip(ran, kernels, strict=True)) >= 206
    assert sum(row["predicted"]["copies"] == seen for row, seen in zip(ran, copies, strict=True)) >= 206


def test_probes_pass_unchanged(timed):
    raw = [json.loads(line) for line in read("sdpa_timing")]
    assert [row for row in timed if "probe" in row] == [row for row in raw if "probe" in row]


def test_times_hold_the_measurements(timed):
    rows = [row for row in timed if "fwd_ms" in row]
    errors = [abs(row["predicted"]["gpu_time_us"] / (1e3 * row["fwd_ms"]) - 1) for row in rows]
    inside = sum(
        row["predicted"]["low_us"] <= 1e3 * row["fwd_ms"] <= row["predicted"]["high_us"] for row in rows
    )
    assert statistics.median(errors) < 0.25
    assert inside >= 0.85 * len(rows)
    trained = [row for row in rows if row.get("bwd_ms")]
    inside = sum(
        row["predicted"]["bwd_low_us"] <= 1e3 * row["bwd_ms"] <= row["predicted"]["bwd_high_us"]
        for row in trained
    )
    assert inside >= 0.85 * len(trained)


def test_activities_of_every_variant(env):
    rows = [json.loads(line) for line in predict_attention_rows(read("attention_activities"), env)][1:]
    assert all(row["predicted"]["raises"] == row.get("error") for row in rows)
    ran = [row for row in rows if "activities" in row]
    right = sum(
        [row["predicted"].get(key) for key in ("kernels", "copies")]
        == list(counts([name for name, _ in row["activities"]])[:2])
        for row in ran
    )
    assert right >= 0.97 * len(ran)


def test_each_of_many_different_calls_is_answered(env):
    variants = ("naive", "naive_inplace", "math", "flash", "efficient", "cudnn", "auto")
    lines = [json.dumps(ROW | {"S": 64 + n, "Sk": 64 + n, "backend": variants[n % 7]}) for n in range(3000)]
    assert len(list(predict_attention_rows(lines, env))) == 3000


@pytest.mark.parametrize("variant", ["naive", "naive_inplace", "math", "flash", "efficient", "cudnn", "auto"])
@pytest.mark.parametrize("key", ["backend", "variant"])
def test_what_a_line_gets(env, variant, key):
    found = one(ROW | {key: variant}, env)
    expected = {"auto": "cudnn", "naive": "none", "naive_inplace": "none"}.get(variant, variant)
    assert found["backend"] == expected
    assert found["raises"] is None
    assert found["low_us"] < found["gpu_time_us"] < found["high_us"]
    assert found["bwd_low_us"] < found["bwd_us"] < found["bwd_high_us"]
    assert found["flops"] > 0
    assert found["hbm_bytes"] > 0
    assert found["bound"] in ("compute", "memory", "overhead")
    assert found == one(ROW | {"variant": f"sdpa_{variant}"}, env)


def test_work_is_exact_for_the_causal_half(env):
    pairs = 1024 * 1025 // 2
    assert one(ROW | {"backend": "flash"}, env)["flops"] == 2 * 8 * pairs * 4 * 64
    assert one(ROW | {"backend": "naive"}, env)["flops"] == 2 * 8 * 1024 * 1024 * 4 * 64
    assert one(ROW | {"backend": "flash"}, env)["hbm_bytes"] == 4 * 2 * 8 * 1024 * 64 * 2


def test_a_refused_call_raises_and_has_no_time(env):
    found = one(ROW | {"backend": "flash", "dtype": "float32"}, env)
    assert found["raises"].startswith("No available kernel")
    assert not {"backend", *TIMES, "flops", "hbm_bytes", "bound"} & found.keys()


def test_what_cannot_be_told_is_absent():
    found = one(ROW | {"backend": "flash"}, environment(torch="2.11", device="cuda"))
    assert found == {"raises": None, "cannot_tell": ["flash: depends on the GPU's compute capability"]}


def test_the_gpus_own_time_is_less_than_what_the_host_sees(env):
    small = ROW | {"S": 16, "Sk": 16, "backend": "flash"}
    assert one(small, env, clock="gpu")["gpu_time_us"] < one(small, env)["gpu_time_us"]
    assert one(small, env)["bound"] == "overhead"


def test_a_prediction_that_is_there_is_replaced(env):
    (first,) = predict_attention_rows([json.dumps(ROW | {"backend": "math"})], env)
    (second,) = predict_attention_rows([first], env)
    assert json.loads(first) == json.loads(second)


def test_grouped_heads_that_do_not_divide_raise(env):
    found = one(ROW | {"Hk": 3, "gqa": True, "backend": "auto"}, env)
    assert found["raises"]
    assert "gpu_time_us" not in found


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nonsense", "line 2: no JSON"),
        ("[1]", "line 2: no JSON object"),
        ('{"B": 1, "backend": "math"}', "line 2: .*required field"),
        (json.dumps(ROW), "line 2: no backend or variant"),
        (json.dumps(ROW | {"backend": "flsh"}), "line 2: backend 'flsh' is not known; give one of naive"),
        (json.dumps(ROW | {"backend": 3}), "line 2: backend 3 is not known"),
        (json.dumps(ROW | {"backend": ["math"]}), "line 2: backend .* is not known"),
        (json.dumps(ROW | {"backend": "math", "variant": "flash"}), "line 2: backend and variant differ"),
        (json.dumps(ROW | {"backend": "math", "dtype": "float12"}), "line 2: 'float12' is no data type"),
        (json.dumps(ROW | {"backend": "math", "B": "2"}), "line 2: .*Expected `int`"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(env, line, says):
    with pytest.raises(GuessError, match=says):
        list(predict_attention_rows([json.dumps(ROW | {"backend": "math"}), line], env))


@pytest.mark.parametrize(
    "odd",
    [
        {"S": 10**12, "Sk": 10**12},
        {"B": 10**18},
        {"H": 10**12},
        {"D": 2**63 - 1},
        {"D": 100_000, "causal": False},
        {"mask": [], "dtype": "float32"},
    ],
)
@pytest.mark.parametrize("variant", ["naive", "naive_inplace", "math", "efficient", "flash", "cudnn", "auto"])
@pytest.mark.parametrize("gpu", ["h200", "mi300x"])
def test_what_cannot_be_is_answered_in_few_kernels(odd, variant, gpu):
    found = one(ROW | odd | {"backend": variant}, environment(gpu, "2.13"))
    assert found.get("kernels", 0) < 1_000
    assert found["raises"] or found.get("cannot_tell") or "gpu_time_us" in found


def test_a_call_beyond_the_memory_is_not_timed(env):
    found = one(ROW | {"S": 10**6, "Sk": 10**6, "backend": "naive"}, env)
    assert "gpu_time_us" not in found
    assert "hbm_bytes" not in found
    assert found["cannot_tell"][0].startswith("out of memory: inputs, scores and output take 29.1 TiB")


@pytest.mark.parametrize(
    "odd",
    [{"B": 2**63}, {"B": 10**100}, {"dropout": -0.1}, {"dropout": 2}, {"mask": [-1, 64]}],
)
def test_what_no_call_can_have_is_refused(odd, env):
    with pytest.raises(GuessError, match="line 1: "):
        one(ROW | odd | {"backend": "math"}, env)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"x":' * 5_000 + "1" + "}" * 5_000])
def test_deep_nesting_is_refused(text, env):
    for predict in (predict_attention_rows, predict_sdpa_rows):
        with pytest.raises(GuessError, match="line 1: no JSON"):
            list(predict([text], env))


def test_a_mask_that_does_not_fit_raises(env):
    row = {"B": 2, "H": 4, "S": 64, "Sk": 64, "D": 64, "dtype": "bfloat16", "mask": [63, 64]}
    text = "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension 2"
    assert one(row | {"backend": "naive"}, env)["raises"] == text.format(63, 64)  # torch 2.13's words
    assert one(row | {"backend": "naive_inplace"}, env)["raises"] == text.format(64, 63)
    assert one(row | {"backend": "math"}, environment("mi300x", "2.13"))["raises"]


def test_bytes_and_errors_are_told_of_amd_too():
    amd = environment("mi300x", "2.13")
    assert one(ROW | {"backend": "naive"}, amd)["hbm_bytes"] > 2 * 8 * 1024 * 1024 * 2
    refused = one(ROW | {"backend": "flash", "dtype": "float32"}, amd)
    assert refused["raises"].startswith("No available kernel")
