"""Recorded without a GPU against traces of the same program on an H200: the same calls, in order."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.capture.program import record_program

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

if TYPE_CHECKING:
    from pathlib import Path

LLAMA = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM


def model(attention):
    config = LlamaConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=6, num_attention_heads=16,
        num_key_value_heads=4, vocab_size=32000, max_position_embeddings=4096,
    )
    config._attn_implementation = attention
    made = LlamaForCausalLM._from_config(config, dtype=torch.bfloat16).cuda().eval()
    ids = torch.randint(0, 32000, (4, 1024), device="cuda")
    return torch.no_grad()(made), (), {"input_ids": ids, "use_cache": False}


def sdpa():
    return model("sdpa")


def eager():
    return model("eager")
"""

VIEWS = frozenset(
    f"aten::{name}"
    for name in (
        "view", "t", "unsqueeze", "expand", "transpose", "_unsafe_view", "slice", "alias", "detach",
        "detach_",
        "select", "as_strided", "_reshape_alias", "empty", "empty_strided", "lift_fresh", "scalar_tensor",
    )
)  # fmt: skip


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_llama_makes_the_calls_of_its_trace(h200: Path, tmp_path: Path, attention: str) -> None:
    (tmp_path / "prog.py").write_text(LLAMA)
    program = record_program(f"prog:{attention}", search=tmp_path)
    assert not program.obstacles
    seen = [
        (call.op, [one.shape for one in call.tensors if one.shape]) for call in program.calls
        if call.op not in VIEWS
    ]  # fmt: skip
    assert seen == calls(h200 / "models" / f"llama_{attention}_prefill.json.gz", "model_fwd")


def calls(path: Path, scope: str) -> list[tuple[str, list[tuple[int, ...]]]]:
    """Read the outermost operations that are not merely made of others, of the scope's last call."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    last = [one for one in events if one.get("cat") == "user_annotation" and one["name"] == scope][-1]
    end = last["ts"] + last["dur"]
    inside = [one for one in events if one.get("cat") == "cpu_op" and last["ts"] <= one["ts"] < end]
    found, covered = [], 0.0
    for one in sorted(inside, key=lambda event: (event["ts"], -event["dur"])):
        if one["ts"] < covered or is_composed(one["name"]):
            continue
        covered = one["ts"] + one["dur"]
        if one["name"] not in VIEWS:
            found.append((one["name"], shapes(one["args"])))
    return found


def shapes(args: dict[str, Any]) -> list[tuple[int, ...]]:
    made: list[tuple[int, ...]] = []
    for dims, kind in zip(args["Input Dims"], args["Input type"], strict=True):
        if kind == "TensorList":
            made += [tuple(each) for each in dims]
        elif kind not in ("", "Scalar", "ScalarList") and dims:
            made.append(tuple(dims))
    return made


def is_composed(name: str) -> bool:
    if name == "aten::scaled_dot_product_attention":
        return False
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
    if packet is None:
        return True
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    kinds = []
    for overload in packet.overloads():
        full = name if overload == "default" else f"{name}.{overload}"
        if "out" not in overload and torch._C._dispatch_has_kernel(full):
            kinds.append(has(full, "CompositeImplicitAutograd"))
    return bool(kinds) and all(kinds)
