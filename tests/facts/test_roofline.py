"""FLOPs, bytes, rates and bounds of scopes and kernels."""

import gzip
import json
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tracehunch.facts import measure
from tracehunch.facts.model import Facts, KernelUse, ScopeFacts
from tracehunch.hardware import find_gpu
from tracehunch.trace import read
from tracehunch.tree import link

MIB, KIB = 1 << 20, 1 << 10
SEED = 8 * 16 * 1024 * 1024  # scores of (8, 16, 1024, 64)


def facts_of(path: Path) -> Facts:
    return measure(link(read(path)))


def whole(facts: Facts) -> ScopeFacts:
    return next(scope for scope in facts.scopes if scope.scope.kind == "whole")


def kernels(scope: ScopeFacts, op: str) -> list[KernelUse]:
    return [use for use in scope.kernels if use.op == op and use.kind == "kernel"]


def test_naive_at_the_seed_shape(h200: Path) -> None:
    """Counted by hand: two products, the scale, the mask with its clone, and the softmax, in bf16."""
    scope = facts_of(h200 / "seeds" / "shapes_naive.json.gz").scope("attn_fwd")
    assert scope is not None
    q = 8 * 16 * 1024 * 64 * 2
    scores = SEED * 2
    by_op = {
        "aten::bmm": (2 * 2 * SEED * 64, 2 * (2 * q + scores)),
        "aten::mul": (0, 2 * scores),
        "aten::copy_": (0, 2 * scores),
        "aten::masked_fill_": (0, 2 * scores + MIB),
        "aten::_softmax": (0, 2 * scores),
    }
    found: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for use in scope.kernels:
        if use.kind != "memset":
            found[use.op] += use.work.flops or 0
            moved[use.op] += use.work.hbm_bytes or 0
    assert {op: (found[op], moved[op]) for op in moved} == by_op
    assert scope.value("flops") == sum(flops for flops, _ in by_op.values())
    assert scope.value("hbm_bytes") == sum(part for _, part in by_op.values()) + 4  # a memset of 4 bytes
    assert scope.value("achieved_bandwidth") == pytest.approx(
        scope.value("hbm_bytes") / scope.value("gpu_time") * 1e6, rel=1e-6
    )
    assert scope.value("bound") == "memory"
    (softmax,) = kernels(scope, "aten::_softmax")
    assert softmax.work.bound == "memory"
    assert softmax.work.percent_of_peak == pytest.approx(
        100 * 3 * 2 * scores / (softmax.total_us * 1e-6) / 4.8e12, rel=1e-6
    )


@pytest.mark.parametrize("backend", ["flash", "efficient", "cudnn"])
def test_fused_attention_at_the_seed_shape(h200: Path, backend: str) -> None:
    scope = facts_of(h200 / "seeds" / f"shapes_sdpa_{backend}.json.gz").scope("sdpa_fwd")
    assert scope is not None
    flops = 8 * 16 * (1024 * 1025 // 2) * 2 * (64 + 64)
    assert scope.value("flops") == flops
    assert scope.value("flops") == pytest.approx(4 * 8 * 16 * 1024 * 1024 * 64 / 2, rel=1e-3)
    memsets = 4 if backend == "cudnn" else 0
    assert scope.value("hbm_bytes") == 4 * 8 * 16 * 1024 * 64 * 2 + memsets
    main = scope.kernels[0]
    rate = 3 * flops / (main.total_us * 1e-6)
    assert main.work.achieved_flops == pytest.approx(rate, rel=1e-6)
    assert main.work.bound == "compute"
    assert main.work.percent_of_peak == pytest.approx(100 * rate / 989.4e12, rel=1e-6)


def test_unfused_math_multiplies_in_float32(h200: Path) -> None:
    scope = facts_of(h200 / "seeds" / "shapes_sdpa_math.json.gz").scope("sdpa_fwd")
    assert scope is not None
    assert scope.value("flops") == 2 * 2 * SEED * 64
    assert scope.value("bound") == "memory"
    for use in kernels(scope, "aten::bmm"):  # on the CUDA cores, whose peak is another
        assert use.work.bound == "compute"
        assert use.work.percent_of_peak == pytest.approx(100 * use.work.achieved_flops / 66.9e12, rel=1e-6)


def test_backward_is_two_and_a_half_times_the_forward(h200: Path) -> None:
    for backend in ("flash", "efficient", "cudnn"):
        scope = whole(facts_of(h200 / "ops" / f"fwdbwd_{backend}.json.gz"))
        forward = sum(u.work.flops or 0 for u in scope.kernels if u.identity.algorithm == "attention-forward")
        backward = sum(
            u.work.flops or 0 for u in scope.kernels if u.identity.algorithm == "attention-backward"
        )
        assert backward == 2.5 * forward > 0
        for use in scope.kernels:  # what only prepares and converts has no work of its own
            if use.identity.algorithm == "attention-helper":
                assert (use.work.flops, use.work.hbm_bytes, use.work.bound) == (None, None, "memory")


@pytest.mark.parametrize("name", ["models/llama_sdpa_train", "models/llama_eager_prefill", "ops/gqa_math"])
def test_products_against_a_count_over_the_raw_json(h200: Path, name: str) -> None:
    path = h200 / f"{name}.json.gz"
    mine: Counter[str] = Counter()
    for use in whole(facts_of(path)).kernels:
        mine[use.op] += use.work.flops or 0
    assert {op: n for op, n in mine.items() if op in RAW} == raw_products(path)


RAW = {
    "aten::mm": lambda dims: 2 * dims[0][0] * dims[0][1] * dims[1][1],
    "aten::addmm": lambda dims: 2 * dims[1][0] * dims[1][1] * dims[2][1],
    "aten::bmm": lambda dims: 2 * dims[0][0] * dims[0][1] * dims[0][2] * dims[1][2],
}


def raw_products(path: Path) -> dict[str, int]:
    """FLOPs of the products that launched a kernel, by op, from nothing but the file."""
    events = [e for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if e.get("ph") == "X"]
    launches = {
        e["args"]["correlation"]: e
        for e in events
        if e["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in e["args"]
    }
    of_thread: dict[Any, list[Any]] = {}
    for e in sorted((e for e in events if e["cat"] == "cpu_op" and e["name"] in RAW), key=lambda e: e["ts"]):
        of_thread.setdefault(e["tid"], []).append(e)
    calls = {}
    for e in events:
        launch = launches.get(e["args"].get("correlation")) if e["cat"] == "kernel" else None
        ops = of_thread.get(launch["tid"], []) if launch else []
        at = bisect_right([op["ts"] for op in ops], launch["ts"]) - 1 if ops else -1
        if at >= 0 and launch["ts"] < ops[at]["ts"] + ops[at]["dur"]:
            calls[id(ops[at])] = ops[at]
    total: Counter[str] = Counter()
    for op in calls.values():
        total[op["name"]] += RAW[op["name"]](op["args"]["Input Dims"])
    return dict(total)


def test_rows_add_up_to_their_scope(h200: Path) -> None:
    for name in ("models/llama_sdpa_prefill", "situations/unet_nchw", "faults/clean"):
        scope = whole(facts_of(h200 / f"{name}.json.gz"))
        if scope.value("flops") is not None:
            assert scope.value("flops") == sum(use.work.flops or 0 for use in scope.kernels)


def test_no_kernel_beats_its_peak_but_out_of_the_cache(h200: Path) -> None:
    """The bytes of what is faster than memory fit the 50 MiB of cache: then the data came from there."""
    told = 0
    for path in sorted(h200.glob("*/*.json.gz")):
        for use in whole(facts_of(path)).kernels:
            percent = use.work.percent_of_peak
            told += percent is not None
            if percent is not None and percent > 105:
                assert use.work.bound == "memory"
                assert use.work.hbm_bytes * 1.0 / use.total < 50 * MIB, (path.name, use.name)
                assert percent < 130
    assert told > 400


def test_two_products_share_their_call_by_time(facts_of: Any, row: Any, device: Any) -> None:
    dims = [[64, 32], [32, 48]]
    args = {"Input Dims": dims, "Input type": ["c10::BFloat16"] * 2, "Input Strides": [[32, 1], [48, 1]]}
    events = [
        row("cpu_op", "aten::mm", 0, 50, **args, **{"Concrete Inputs": ["", ""]}),
        row("cuda_runtime", "cudaLaunchKernel", 5, 2, correlation=1),
        row("cuda_runtime", "cudaLaunchKernel", 10, 2, correlation=2),
        row("cuda_runtime", "cudaLaunchKernel", 15, 2, correlation=3),
        row("kernel", "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN", 20, 3, correlation=1),
        row("kernel", "nvjet_tst_64x256_64x4_2x1_v_bz_coopA_TNN", 30, 1, correlation=2),
        row("kernel", "void cublasLt::splitKreduce_kernel<32, 16, int, float>(x)", 40, 9, correlation=3),
    ]
    scope = whole(facts_of(events, deviceProperties=[device]))
    flops, moved = 2 * 64 * 32 * 48, 2 * (64 * 32 + 32 * 48 + 64 * 48)
    long, short = sorted((use for use in scope.kernels if use.work.flops), key=lambda use: -use.total_us)
    assert (long.work.flops, short.work.flops) == (flops * 3 // 4, flops // 4)
    assert long.work.hbm_bytes + short.work.hbm_bytes == moved
    assert (scope.value("flops"), scope.value("hbm_bytes")) == (flops, moved)


GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN"
SHAPES = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["c10::BFloat16"] * 2}


def one_kernel(row: Any, op: str, kernel: str, dur: float, **args: Any) -> list[Any]:
    return [
        row("user_annotation", "f", 0, 60),
        row("cpu_op", op, 1, 50, **args),
        row("cuda_runtime", "cudaLaunchKernel", 5, 2, correlation=1),
        row("kernel", kernel, 20, dur, correlation=1),
    ]


def test_an_unknown_gpu_has_no_roof(facts_of: Any, row: Any, device: Any) -> None:
    events = one_kernel(row, "aten::mm", GEMM, 55, **SHAPES)
    known = facts_of(events, deviceProperties=[device]).scope("f")
    assert known.value("bound") == "compute"
    unknown = facts_of(events, deviceProperties=[device | {"name": "NVIDIA X9000"}]).scope("f")
    assert "bound" not in unknown.facts
    assert (unknown.kernels[0].work.bound, unknown.percent_of_peak) == (None, {})
    assert unknown.value("achieved_flops") == known.value("achieved_flops") > 0
    assert find_gpu("NVIDIA X9000") is None


def test_a_scope_that_mostly_waits_is_bound_by_overhead(facts_of: Any, row: Any, device: Any) -> None:
    for dur, bound in ((29.9, "overhead"), (30.1, "compute")):
        events = one_kernel(row, "aten::mm", GEMM, dur, **SHAPES)
        assert facts_of(events, deviceProperties=[device]).scope("f").value("bound") == bound


FOREIGN = (
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::half_t>>(x)"
)
UNKNOWN = [  # op, kernel, arguments, what is absent
    ("flash_attn::_flash_attn_forward", FOREIGN, SHAPES, {"flops", "hbm_bytes", "bound"}),
    ("my::op", "who_knows<int>(float*)", SHAPES, {"flops", "hbm_bytes", "bound"}),
    ("aten::mm", GEMM, {}, {"flops", "hbm_bytes", "bound"}),  # no shapes
    ("aten::add", GEMM, SHAPES, {"flops", "bound"}),  # a product where an addition was called
    ("aten::index", "void at::native::index_elementwise_kernel<128, 4, x>(int)", SHAPES, {"hbm_bytes"}),
]


@pytest.mark.parametrize("case", UNKNOWN, ids=[case[0] for case in UNKNOWN])
def test_what_cannot_be_known_is_absent(facts_of: Any, row: Any, device: Any, case: Any) -> None:
    op, kernel, args, absent = case
    scope = facts_of(one_kernel(row, op, kernel, 55, **args), deviceProperties=[device]).scope("f")
    rates = {"flops": "achieved_flops", "hbm_bytes": "achieved_bandwidth"}
    lost = absent | {rates[key] for key in absent if key in rates}
    assert {*rates, *rates.values(), "bound"} - scope.facts.keys() == lost


def test_an_unclassified_kernel_of_a_known_op_is_known(facts_of: Any, row: Any, device: Any) -> None:
    for op, flops in (("aten::mm", 2 * 4096**3), ("aten::add", 0)):
        scope = facts_of(
            one_kernel(row, op, "who_knows<int>(float*)", 55, **SHAPES), deviceProperties=[device]
        )
        assert scope.scope("f").value("flops") == flops


def test_a_negligible_part_may_be_unknown(facts_of: Any, row: Any, device: Any) -> None:
    for dur, told in ((0.5, True), (0.6, False)):  # of 55 us
        events = [
            *one_kernel(row, "aten::mm", GEMM, 55, **SHAPES),
            row("cuda_runtime", "cudaLaunchKernel", 55, 2, correlation=2),
            row("kernel", "who_knows<int>(float*)", 90, dur, correlation=2),
        ]
        found = facts_of(events, deviceProperties=[device]).scope("f").facts.keys()
        assert ({"flops", "hbm_bytes"} <= found) is told


def test_copies_move_what_was_recorded(facts_of: Any, row: Any, device: Any) -> None:
    for name, times in (("Memcpy DtoD (Device -> Device)", 2), ("Memcpy HtoD (Pinned -> Device)", 1)):
        events = [
            row("user_annotation", "f", 0, 10),
            row("cuda_runtime", "cudaMemcpyAsync", 1, 2, correlation=1),
            row("gpu_memcpy", name, 5, 8, correlation=1, bytes=4000),
        ]
        scope = facts_of(events, deviceProperties=[device]).scope("f")
        assert (scope.value("hbm_bytes"), scope.value("flops")) == (times * 4000, 0)
        assert scope.kernels[0].work.bound == ("memory" if times == 2 else None)  # PCIe is no roof of the GPU


def test_calls_that_differ_have_their_median(facts_of: Any, row: Any, device: Any) -> None:
    events = []
    for number, size in enumerate((64, 128, 256)):
        start = 100 * number
        args = {"Input Dims": [[size, size]] * 2, "Input type": ["c10::BFloat16"] * 2}
        events += [
            row("user_annotation", "f", start, 60),
            row("cpu_op", "aten::mm", start + 1, 50, **args),
            row("cuda_runtime", "cudaLaunchKernel", start + 5, 2, correlation=number + 1),
            row("kernel", GEMM, start + 10, 40, correlation=number + 1),
        ]
    scope = facts_of(events, deviceProperties=[device]).scope("f")
    fact = scope.facts["flops"]
    assert (fact.low, fact.value, fact.high) == (2 * 64**3, 2 * 128**3, 2 * 256**3)
    assert scope.kernels[0].work.flops == 2 * 128**3
