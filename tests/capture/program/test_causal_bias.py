"""`torch.nn.attention.bias`: the backend that its Python code asks for on a GPU, recorded without one."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import pytest

from tracehunch.capture.program import record_call
from tracehunch.predict.environment import environment
from tracehunch.predict.program import guess_program
from tracehunch.predict.program.compiled_guess import guess_compiled

torch = pytest.importorskip("torch")
bias = pytest.importorskip("torch.nn.attention.bias")

F, BF16, FP32 = torch.nn.functional, torch.bfloat16, torch.float32
FLASH, EFFICIENT = "_scaled_dot_product_flash_attention", "_efficient_attention_forward"
SDPA = "scaled_dot_product_attention"
VIEWS = ("transpose", "slice", "expand", "view", "detach", "empty", "_unsafe_view")


def guessed(
    *, queries: int = 128, keys: int = 512, width: int = 64, kv_heads: int = 8, dtype: Any = BF16,
    grad: bool = False, only: str | None = None, upper: bool = False, size: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Record one call with a bias, and its backward; return the guess for an H200."""

    def one(heads: int, length: int) -> Any:
        return torch.randn(2, heads, length, width, dtype=dtype, requires_grad=grad)

    make = bias.causal_upper_left if upper else bias.causal_lower_right
    kernels = torch.nn.attention

    def run(q: Any, k: Any, v: Any) -> None:
        with kernels.sdpa_kernel(getattr(kernels.SDPBackend, only)) if only else nullcontext():
            made = F.scaled_dot_product_attention(q, k, v, make(*(size or (queries, keys))), **options)
        if grad:
            made.sum().backward()

    inputs = one(8, queries), one(kv_heads, keys), one(kv_heads, keys)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return guess_program(record_call(run, inputs), environment("h200", "2.13"))


def forward(guess: Any) -> list[str]:
    """Return the names of what the forward calls, up to the loss."""
    ops = [one.call.op.removeprefix("aten::") for one in guess.calls if one.call.phase == "forward"]
    ops = ops[: ops.index("sum")] if "sum" in ops else ops
    return [op for op in ops if op not in VIEWS]


PADDED = ["constant_pad_nd"] * 3 + [FLASH]
MASKED = ["ones", "tril", SDPA]


@pytest.mark.parametrize(
    ("asked", "calls", "backend", "reason"),
    [
        ({}, [FLASH], "flash", ""),
        ({"width": 80, "enable_gqa": True, "kv_heads": 2}, [FLASH], "flash", ""),
        ({"width": 100}, PADDED, "flash", ""),
        ({"width": 256, "dropout_p": 0.1}, [FLASH], "flash", ""),
        ({"queries": 512, "keys": 128}, [FLASH], "flash", ""),
        ({"size": (64, 256)}, [FLASH], "flash", ""),  # it says which triangle, not how large
        ({"width": 512}, [EFFICIENT], "efficient", "flash: head dim 512 > 256"),
        ({"dtype": FP32}, [EFFICIENT], "efficient", "flash: dtype float32"),
        ({"only": "EFFICIENT_ATTENTION"}, [EFFICIENT], "efficient", "flash: switched off"),
        ({"dtype": FP32, "enable_gqa": True, "kv_heads": 2}, MASKED, "math", "efficient: heads q 8, k 2"),
        ({"kv_heads": 2}, MASKED, "error", "The size of tensor a (8) must match"),
        ({"only": "MATH"}, MASKED, "math", "flash: switched off"),
        ({"only": "MATH", "size": (64, 256)}, MASKED, "error", "The size of tensor a (512) must match"),
        ({"only": "CUDNN_ATTENTION"}, MASKED, "cudnn", "flash: switched off"),
        ({"only": "FLASH_ATTENTION", "dtype": FP32}, MASKED, "error", "No available kernel"),
        ({"upper": True}, [SDPA], "cudnn", "flash: is_causal with L=128, S=512"),
        ({"queries": 256, "keys": 256}, [SDPA], "cudnn", "cudnn is asked first"),
    ],
)
def test_backend_is_that_of_the_guessed_gpu(
    asked: dict[str, Any], calls: list[str], backend: str, reason: str
) -> None:
    guess = guessed(**asked)
    assert forward(guess) == calls
    (one,) = guess.sdpa
    assert one.backend == backend
    assert any(said.startswith(reason) for said in one.reasons)
    assert "causal-lengths" not in {hazard.id for hazard in one.hazards} or asked.get("upper")


@pytest.mark.parametrize(
    ("asked", "kernels"),
    [
        # two row-major copies; three kernels of its own
        ({}, {"_scaled_dot_product_flash_attention_backward": 5}),
        # the gradients of three paddings are one copy each, that of the slice a fill and a copy
        (
            {"width": 100},
            {"slice_backward": 2, "_scaled_dot_product_flash_attention_backward": 5, "constant_pad_nd": 3},
        ),
        ({"only": "EFFICIENT_ATTENTION"}, {"_efficient_attention_backward": 3}),
    ],
)
def test_backward_is_the_backends_own(asked: dict[str, Any], kernels: dict[str, int]) -> None:
    guess = guessed(grad=True, **asked)
    found: dict[str, int] = {}
    for one in guess.calls:
        name = one.call.op.removeprefix("aten::")
        if one.call.phase == "backward" and name in {*kernels, "constant_pad_nd"}:
            found[name] = found.get(name, 0) + len(one.activities.kernels)
    assert found == kernels


def test_bias_takes_no_memory_and_stays_on_the_cpu() -> None:
    seen = []
    size = 2**20
    record_call(lambda x: seen.append(bias.causal_lower_right(size, size)) or x + 1, (torch.ones(1),))
    assert (seen[0].shape, seen[0].device.type, seen[0].untyped_storage().nbytes()) == (
        (2, size, size),
        "cpu",
        4,
    )


@pytest.mark.parametrize(("gpu", "flash"), [("h200", True), ("t4", False)])
def test_what_can_be_used_is_told_of_the_guessed_gpu(gpu: str, *, flash: bool) -> None:
    asked, said = torch.backends.cuda, []

    def run(q: Any) -> None:
        params = asked.SDPAParams(*(q, q, q, None, 0.0, False, False))
        said.extend((asked.can_use_flash_attention(params, debug=True), asked.is_flash_attention_available()))

    with torch.no_grad():
        record_call(run, (torch.randn(1, 2, 16, 64, dtype=BF16),), env=environment(gpu, "2.13"))
    assert said == [flash, True]


def test_torch_is_as_before() -> None:
    before = (bias.can_use_flash_attention, torch.backends.cuda.can_use_flash_attention)
    guessed()
    assert (bias.can_use_flash_attention, torch.backends.cuda.can_use_flash_attention) == before
    made = bias.causal_lower_right(3, 5)
    assert (type(made), made.shape, made.seq_len_kv) == (bias.CausalBias, (2, 3, 5), 5)
    assert made.untyped_storage().nbytes() == 4 * 2 * 3 * 5


def test_compiled_program_asks_alike() -> None:
    compiled = pytest.importorskip("tracehunch.capture.compiled")
    made = bias.causal_lower_right(128, 512)
    inputs = [torch.randn(2, 8, length, 64, dtype=BF16) for length in (128, 512, 512)]
    with torch.no_grad():
        program = compiled.record_compiled_call(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, made) * 2, inputs
        )
    guess = guess_compiled(program, environment("h200", "2.13"))
    (one,) = guess.sdpa
    assert (one.backend, one.reasons[0].partition(" ")[0]) == ("flash", f"aten::{FLASH}")
