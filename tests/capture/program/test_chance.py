"""Layers that are left out by chance: a rate of nothing decides, another is told."""

from __future__ import annotations

import pytest

from tracehunch.capture.program import record_call

torch = pytest.importorskip("torch")


def dropping(rate: float) -> object:
    layer = torch.nn.Linear(4, 4)
    x = torch.randn(2, 4)

    def run() -> object:
        return x if torch.rand([]) < rate else layer(x)

    return run


def layers(program: object) -> int:
    return sum(one.op == "aten::addmm" for one in program.calls)


@pytest.mark.parametrize(("rate", "ran", "told"), [(0.0, 1, 0), (1.0, 0, 0), (0.1, 1, 1), (0.9, 0, 1)])
def test_a_layer_runs_where_it_most_often_does(rate, ran, told):
    program = record_call(dropping(rate), (), {})
    assert layers(program) == ran
    assert len(program.obstacles) == told
    assert not any(one.stops for one in program.obstacles)
    assert all(f"below {rate:g}" in one.reason for one in program.obstacles)


def test_the_number_itself_is_not_known():
    def run() -> None:
        if torch.rand([]).item() < 0.1:
            torch.zeros(1, device="cuda")

    assert record_call(run, (), {}).obstacles[0].stops


def test_many_numbers_at_once_decide_nothing():
    def run() -> None:
        if (torch.rand(2) < 0.1).any():
            torch.zeros(1, device="cuda")

    assert record_call(run, (), {}).obstacles[0].stops


def test_a_layer_that_is_left_out_by_a_model_of_a_library():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "word_embed_proj_dim": 16, "ffn_dim": 16, "num_attention_heads": 2}
    config = transformers.OPTConfig(**sizes, num_hidden_layers=2, vocab_size=32, max_position_embeddings=16)
    ids = torch.ones(1, 4, dtype=torch.long)
    model = transformers.OPTModel(config).train()
    program = record_call(model, (ids,), {"use_cache": False})
    assert not program.obstacles
    assert layers(program) == 2 * 6
