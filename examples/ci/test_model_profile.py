"""Fails when attention falls back to SDPA's math backend, or when the model gains a copy. See README.md."""

import pytest
import torch
from model import Decoder

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32
FUSED = ("flash", "efficient", "cudnn")


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Decoder().to(DEVICE, DTYPE).eval()


@pytest.fixture
def attention(model):
    return model.blocks[0].attention


@pytest.fixture
def tokens():
    return torch.randint(0, 256, (2, 256), device=DEVICE)


@pytest.fixture
def hidden():
    return torch.randn(2, 256, 256, device=DEVICE, dtype=DTYPE)


@pytest.fixture(autouse=True)
def inference():
    with torch.inference_mode():
        yield


def test_attention_is_fused(hunch, model, tokens):
    p = hunch(model, tokens)
    assert p.facts["sdpa.backend"] in FUSED


def test_attention_copies_no_tensor(hunch, attention, hidden):
    p = hunch(attention, hidden)
    assert p.ops["copy_"] == 0


@pytest.mark.tracehunch(kernels=3, any_copies=0)  # product, attention, product; skipped without a GPU
def test_attention_is_three_kernels(hunch, attention, hidden):
    hunch(attention, hidden)
