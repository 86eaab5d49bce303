"""Forward and backward in layouts, masks, modes and sizes of our own choice, run on an H200 (torch 2.11).

The second part of the file (from the first row with a layout of its own on) was recorded after the rules were
written.
"""

from collections import Counter
from dataclasses import replace

import pytest

from tracehunch.predict.attention import predict_attention
from tracehunch.predict.sdpa import TensorSpec, sdpa_call, tensor
from tracehunch.predict.sdpa.tensor import contiguous_strides

FUSED = ("flash", "efficient", "cudnn")
UNFUSED = ("naive", "naive_inplace", "math")

# pieces of names -> kind, for the kernels of PyTorch's own operations; the first that fits
KINDS = (
    ("softmax_warp", "softmax"),
    ("cunn_SoftMax", "softmax"),
    ("FillFunctor", "fill"),
    ("direct_copy", "copy"),
    ("float16_copy", "copy"),
    ("fused_dropout", "dropout"),
    ("triu_tril", "triu-tril"),
    ("isneginf", "elementwise"),
    ("elementwise_kernel", "elementwise"),
    ("reduce_kernel", "reduce"),
)


@pytest.fixture(scope="module")
def predicted(truth, measured_env):
    """Rows with what is predicted of their forward and, where it was run, of their backward."""
    found = []
    for row in truth("attention_probe"):
        env = replace(measured_env, deterministic=row["deterministic"], warn_only=True)
        call = _call(row)
        forward = predict_attention(row["variant"], call, env)
        backward = None
        if "backward" in row:
            backward = predict_attention(row["variant"], call, env, backward=True, gradient=_gradient(row))
        found.append((row, forward, backward))
    return found


def test_errors(predicted):
    assert all(forward.raises == row.get("error") for row, forward, _ in predicted)
    assert sum("error" in row for row, _, _ in predicted) > 200


@pytest.mark.parametrize("variant", FUSED)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_fused_kernels_copies_and_memsets(predicted, counts, variant, direction):
    pairs = _pairs(predicted, variant, direction)
    assert len(pairs) > 50
    assert [(row, found) for row, found in pairs if counts.of_names(row[direction]) != counts.of(found)] == []


@pytest.mark.parametrize("variant", UNFUSED)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_unfused_kernels_and_copies(predicted, counts, variant, direction):
    pairs = _pairs(predicted, variant, direction)
    assert len(pairs) > 15
    right = sum(
        replace(counts.of_names(row[direction]), memsets=0) == replace(counts.of(found), memsets=0)
        for row, found in pairs
    )
    assert right >= 0.95 * len(pairs)  # split-K products are the rest


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_kinds_in_order(predicted, direction):
    """What is no matrix product comes in the order in which it was seen, and is of the kind it was."""
    compared, wrong = 0, Counter()
    for row, *both in predicted:
        found = both[direction == "backward"]
        if found is None or direction not in row:
            continue
        seen = [kind for kind in map(_kind, row[direction]) if kind is not None]
        expected = [k.algorithm for k in found.kernels if k.library == "pytorch" and k.algorithm != "rng"]
        compared += 1
        if seen != expected:
            wrong[row["variant"], tuple(seen), tuple(expected)] += 1
    assert compared > 900
    assert not wrong


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_attention_kernels_by_name(predicted, direction):
    marks = ("pytorch_flash::", "fmha_cutlass", "cudnn")
    compared = 0
    for row, *both in predicted:
        found = both[direction == "backward"]
        if found is None or direction not in row or row["variant"] not in FUSED:
            continue
        names = [n for n in row[direction] if n.startswith(marks)]
        guesses = [k for k in found.kernels if k.library != "pytorch"]
        assert len(names) == len(guesses)
        for name, guess in zip(names, guesses, strict=True):
            short = name.removeprefix("pytorch_flash::")
            assert guess.hint in name or (len(name) == 90 and guess.hint.startswith(short))  # cut in the file
            compared += 1
    assert compared > 250


def _pairs(predicted, variant, direction):
    return [
        (row, backward if direction == "backward" else forward)
        for row, forward, backward in predicted
        if row["variant"] == variant and direction in row
    ]


def _kind(name):
    if name.startswith(("Mem", "cudnn", "pytorch_flash", "fmha_", "nvjet", "cutlass", "cublas")):
        return None
    if "cublas" in name or "splitK" in name or "gemm" in name or "philox" in name:
        return None
    return next((kind for piece, kind in KINDS if piece in name), None)


def _call(row):
    layout = row["layout"]
    call = sdpa_call(
        row["B"],
        row["H"],
        row["S"],
        row["D"],
        kv_heads=row["Hk"],
        keys=row["Sk"],
        value_dim=row["Dv"],
        dtype=row["dtype"],
        layout=layout if layout in ("bshd", "strided_last", "expand_b") else "bhsd",
        mask=_mask(row.get("mask")),
        dropout=row["dropout"],
        is_causal=row["causal"],
        enable_gqa=row["gqa"],
        requires_grad=row["grad"],
    )
    q, k, v = (_laid_out(t, layout) for t in call.inputs)
    return replace(call, q=q, k=k, v=v)


def _laid_out(t, layout):
    """Lay a contiguous (B, H, S, D) tensor out in the ways that grids do not have."""
    _, heads, length, width = t.shape
    if layout == "expand_h":  # one head, expanded
        return replace(t, stride=(length * width, 0, width, 1))
    if layout == "qkv":  # a third of one projection, split into heads and transposed
        row = 3 * heads * width
        return replace(t, stride=(length * row, width, row, 1), storage_offset=heads * width)
    if layout == "3d":
        return replace(t, shape=t.shape[1:], stride=t.stride[1:])
    return t


def _mask(given):
    if given is None:
        return None
    made = tensor(tuple(given["shape"]), given["dtype"])
    stride = tuple(given.get("stride", made.stride))
    return replace(made, stride=stride, requires_grad=given.get("grad", False))


def _gradient(row):
    shape = (row["B"], row["H"], row["S"], row["Dv"])[1 if row["layout"] == "3d" else 0 :]
    if row["gradient"] == "like":
        return None
    stride = (0,) * len(shape) if row["gradient"] == "expanded" else contiguous_strides(shape)
    return TensorSpec(shape, stride, row["dtype"])
