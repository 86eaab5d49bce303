"""The cases that the reference gives for the default wheels with nothing pinned."""

from dataclasses import replace

import pytest

from tracehunch.predict.environment import Environment, environment
from tracehunch.predict.sdpa import SdpaCall, predict_sdpa, sdpa_call, tensor


def on(gpu, torch="2.13", **changes):
    return replace(environment(gpu, torch), **changes)


def capability(major, minor, torch="2.13"):
    return environment(torch=torch, compute_capability=(major, minor))


def call(**changes) -> SdpaCall:
    given = {"dtype": "bfloat16", "head_dim": 128, "length": 1024, "batch": 2, "heads": 8} | changes
    sizes = [given.pop(name) for name in ("batch", "heads", "length", "head_dim")]
    return sdpa_call(*sizes, **given)


CAUSAL = call(is_causal=True)
GQA = {"kv_heads": 2, "enable_gqa": True}
MASK_4D = {"mask": (2, 1, 1024, 1024)}
MASK_3D = {"mask": (8, 1024, 1024)}


def masked_with_grad():
    base = call()
    return replace(base, mask=tensor((2, 8, 1024, 1024), "bfloat16", requires_grad=True))


def strided_last():
    return call(layout="strided_last")


def offset(**changes):
    base = call(**changes)
    return replace(base, q=replace(base.q, storage_offset=1))


CASES = [
    (1, CAUSAL, on("h200"), "cudnn"),
    (2, CAUSAL, on("h200", "2.10"), "flash"),
    (3, CAUSAL, on("a100-80-sxm"), "flash"),
    (4, CAUSAL, on("rtx-5090"), "flash"),
    (4, CAUSAL, capability(12, 1), "flash"),
    (5, call(dtype="float16", is_causal=True), on("t4"), "efficient"),
    (5, CAUSAL, on("t4"), "math"),
    (6, call(**MASK_4D), on("h200"), "cudnn"),
    (6, call(**MASK_4D), on("a100-80-sxm"), "efficient"),
    (7, call(**MASK_3D), on("h200"), "efficient"),
    (8, masked_with_grad(), on("h200"), "efficient"),
    (9, call(**GQA), on("a100-80-sxm"), "flash"),
    (9, call(**GQA, **MASK_4D), on("a100-80-sxm"), "math"),
    (9, call(**GQA, **MASK_4D), on("h200"), "cudnn"),
    (10, call(dtype="float32"), on("h200"), "efficient"),
    (10, call(dtype="float32", **GQA), on("h200"), "math"),
    (10, call(dtype="float64"), on("h200"), "math"),
    (11, call(head_dim=320), on("a100-80-sxm"), "efficient"),
    (11, call(head_dim=320, **GQA), on("a100-80-sxm"), "math"),
    (12, call(head_dim=256), on("h200"), "cudnn"),
    (12, call(head_dim=256), on("h200", "2.14"), "cudnn"),
    (12, call(head_dim=256, requires_grad=True), on("h200", "2.14"), "cudnn"),
    (12, call(head_dim=256, value_dim=128, requires_grad=True), on("h200", "2.14"), "efficient"),
    (13, call(head_dim=256), on("b200"), "flash"),
    (14, call(head_dim=100), on("h200"), "flash"),
    (15, call(value_dim=64), on("a100-80-sxm"), "efficient"),
    (15, call(value_dim=64), on("h200"), "cudnn"),
    (16, call(length=1, keys=4096, is_causal=True), on("h200"), "cudnn"),
    (16, call(length=1, keys=4096, is_causal=True), on("a100-80-sxm"), "efficient"),
    (17, call(length=1, keys=4096), on("h200"), "cudnn"),
    (17, call(length=1, keys=4096), on("a100-80-sxm"), "flash"),
    (18, call(keys=1), on("h200"), "flash"),
    (19, call(dropout=0.1, requires_grad=True), on("h200"), "flash"),
    (19, call(dropout=0.1, requires_grad=True), on("h200", "2.11"), "cudnn"),
    (20, call(), on("h200", deterministic=True), "flash"),
    (21, call(head_dim=224, requires_grad=True), on("rtx-4090"), "efficient"),
    (21, call(head_dim=224), on("rtx-4090"), "flash"),
    (22, SdpaCall(*(tensor((8, 128, 64), "float16"),) * 3), on("h200"), "math"),
    (22, SdpaCall(*(tensor((2, 2, 8, 128, 64), "float16"),) * 3), on("h200"), "math"),
    (23, call(kv_heads=1), on("h200"), "math"),
    (23, call(kv_heads=1), on("a100-80-sxm"), "math"),
    (23, call(kv_heads=1), on("h200", "2.14"), "cudnn"),
    (23, call(kv_heads=1), on("a100-80-sxm", "2.14"), "flash"),
    (25, strided_last(), on("h200"), "math"),
    (25, strided_last(), on("a100-80-sxm"), "math"),
    (26, offset(**MASK_4D), on("a100-80-sxm"), "math"),
    (26, offset(**MASK_4D), on("a100-80-sxm", "2.11"), "efficient"),
]


@pytest.mark.parametrize(("number", "given", "env", "chosen"), CASES)
def test_golden_case(number: int, given: SdpaCall, env: Environment, chosen: str):
    prediction = predict_sdpa(given, env)
    assert (number, prediction.chosen) == (number, chosen), prediction
    assert prediction.raises is None or number == 26  # the kernel then finds the pointer unaligned


def test_case_24_heads_that_do_not_broadcast_raise():
    prediction = predict_sdpa(call(kv_heads=2), on("h200"))
    assert prediction.raises == (
        "The size of tensor a (8) must match the size of tensor b (2) at non-singleton dimension 1"
    )
    assert prediction.ran is None


def test_all_26_cases_are_there():
    assert {number for number, *_ in CASES} | {24} == set(range(1, 27))
