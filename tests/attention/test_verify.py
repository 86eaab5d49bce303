import math
from dataclasses import replace

import pytest

from tracehunch.attention import VARIANTS
from tracehunch.attention.workload import Workload

torch = pytest.importorskip("torch")

from tracehunch.attention.inputs import make_inputs  # noqa: E402  # after importorskip
from tracehunch.attention.outcome import Device  # noqa: E402  # after importorskip
from tracehunch.attention.run import Bench, running  # noqa: E402  # after importorskip
from tracehunch.attention.verify import verify  # noqa: E402  # after importorskip

SMALL = Workload(batch=2, heads=4, seq=48, head_dim=16, kv_heads=2)
ON_CPU = [variant for variant in VARIANTS if variant.backend in ("", "MATH", "FLASH_ATTENTION")]


def output_of(variant, workload, inputs):
    with running(variant, Bench(workload, Device("cpu", "CPU"), inputs)) as forward:
        return forward()


@pytest.mark.parametrize("variant", ON_CPU, ids=lambda variant: variant.name)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_every_variant_computes_attention(variant, dtype, causal, kv_heads):
    workload = replace(SMALL, dtype=dtype, causal=causal, kv_heads=kv_heads)
    inputs = make_inputs(workload, "cpu")
    verification = verify(output_of(variant, workload, inputs), inputs, dtype)
    assert verification.passed
    assert verification.max_error > 0


@pytest.mark.parametrize(
    "workload", [SMALL, replace(SMALL, causal=False), replace(SMALL, kv_heads=4)], ids=str
)
@pytest.mark.parametrize("wrong", ["no mask", "no scale", "last head dropped", "zeros", "other keys"])
def test_what_is_not_attention_is_found_out(workload, wrong):
    inputs = make_inputs(workload, "cpu")
    changed = {
        "no mask": replace(inputs, causal=not inputs.causal),
        "no scale": replace(inputs, q=inputs.q * 4),
        "other keys": replace(inputs, k=inputs.k.flip(2)),
    }.get(wrong, inputs)
    output = output_of(VARIANTS[0], replace(workload, causal=changed.causal), changed).clone()
    if wrong == "last head dropped":
        output[:, -1] = output[:, 0]
    if wrong == "zeros":
        output.zero_()
    assert not verify(output, inputs, workload.dtype).passed


def test_nan_and_other_shapes_are_wrong():
    inputs = make_inputs(SMALL, "cpu")
    output = output_of(VARIANTS[0], SMALL, inputs)
    assert math.isinf(verify(output[:, :1], inputs, SMALL.dtype).max_error)
    output[-1, 0, 3, 5] = math.nan
    assert not verify(output, inputs, SMALL.dtype).passed


def test_long_sequences_are_compared_in_blocks(monkeypatch):
    inputs = make_inputs(SMALL, "cpu")
    output = output_of(VARIANTS[0], SMALL, inputs)
    whole = verify(output, inputs, SMALL.dtype)
    monkeypatch.setattr("tracehunch.attention.verify.QUERY_BLOCK", 7)
    assert verify(output, inputs, SMALL.dtype).max_error == pytest.approx(whole.max_error, rel=1e-9)


def test_the_same_inputs_come_out_every_time():
    first, second = make_inputs(SMALL, "cpu"), make_inputs(SMALL, "cpu")
    assert torch.equal(first.q, second.q)
    assert first.q.shape == (2, 4, 48, 16)
    assert first.k.shape == (2, 2, 48, 16)
    assert not torch.equal(first.k, first.v)
