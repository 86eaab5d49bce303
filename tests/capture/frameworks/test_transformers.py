"""The callback in a real ``Trainer``: a tiny model of random weights, on the CPU."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch import callbacks
from tracehunch.capture.frameworks import missing
from tracehunch.errors import CaptureError, GuessError

if TYPE_CHECKING:
    from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


class Tokens(torch.utils.data.Dataset):  # type: ignore[misc]  # its base is not typed here
    """Random tokens, the same each time; the one at ``fails_at`` cannot be read."""

    def __init__(self, fails_at: int = -1) -> None:
        generator = torch.Generator().manual_seed(0)
        self._rows = torch.randint(0, 64, (64, 8), generator=generator)
        self._fails_at = fails_at
        self._read = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        self._read += 1
        if self._read == self._fails_at:
            raise OSError("the disk is gone")
        return {"input_ids": self._rows[index], "labels": self._rows[index]}


def _trainer(folder: Path, callback: Any = None, *, updates: int = 7, fails_at: int = -1) -> Any:
    transformers.set_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.LlamaConfig(**sizes, vocab_size=64, max_position_embeddings=8)
    options = transformers.TrainingArguments(
        str(folder / "out"), max_steps=updates, per_device_train_batch_size=2, gradient_accumulation_steps=2,
        report_to=[], save_strategy="no", use_cpu=True, logging_steps=1, disable_tqdm=True,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    given = [] if callback is None else [callback]
    return transformers.Trainer(model, options, train_dataset=Tokens(fails_at), callbacks=given)


def _losses(trainer: Any) -> list[float]:
    trainer.train()
    return [one["loss"] for one in trainer.state.log_history if "loss" in one]


def test_a_step_is_an_update_and_the_training_is_as_without(
    tmp_path: Path, count: Any, steps: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    callback = callbacks.for_transformers(tmp_path / "t.json.gz", guess={"sdpa.backend": "flash"})
    losses = _losses(_trainer(tmp_path, callback))
    names = count(tmp_path / "t.json.gz")
    assert len(steps(names)) == 3
    assert names["Optimizer.step#AdamW.step"] == 3
    assert names["aten::scaled_dot_product_attention"] == 6  # two batches an update, one layer
    assert "held" in capsys.readouterr().out
    assert callback.look.verdict.held[0].claim.scope == "ProfilerStep"
    assert losses == _losses(_trainer(tmp_path))
    assert len(losses) == 7


def test_no_hook_stays_and_only_the_main_process_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    callback = callbacks.for_transformers(tmp_path / "t.json.gz")
    trainer = _trainer(tmp_path)
    control = trainer.control
    trainer.state.is_world_process_zero = False
    callback.on_train_begin(trainer.args, trainer.state, control)
    for _ in range(6):
        callback.on_step_end(trainer.args, trainer.state, control)
    callback.on_train_end(trainer.args, trainer.state, control)
    assert capsys.readouterr().out == ""
    assert callback.trace_path == tmp_path / "t.json.gz"
    assert callback.look is None


def test_a_training_that_raises_within_the_block_leaves_a_whole_trace(
    tmp_path: Path, count: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    callback = callbacks.for_transformers(tmp_path / "t.json.gz")
    trainer = _trainer(tmp_path, callback, fails_at=20)  # in the fifth update, the second that is recorded
    with pytest.raises(OSError, match="the disk is gone"), callback:
        trainer.train()
    names = count(tmp_path / "t.json.gz")
    assert names["Optimizer.step#AdamW.step"] == 1
    assert "ended after 1 of 3 steps" in capsys.readouterr().out


def test_a_guess_that_makes_no_sense_is_refused_when_the_callback_is_made(tmp_path: Path) -> None:
    with pytest.raises(GuessError, match="did you mean kernels"):
        callbacks.for_transformers(tmp_path / "t.json.gz", guess={"kernel": 5})


def test_a_hunch_toml_is_taken(tmp_path: Path) -> None:
    hunch = tmp_path / "hunch.toml"
    hunch.write_text('[[guess]]\nscope = "Optimizer.step#AdamW.step"\nleaf_ops = ">= 1"\n')
    callback = callbacks.for_transformers(tmp_path / "t.json.gz", guess=hunch)
    _trainer(tmp_path, callback, updates=5).train()
    assert [one.claim.key for one in callback.look.verdict.held] == ["leaf_ops"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (callbacks.for_transformers, "transformers is not installed; pip install 'tracehunch[transformers]'"),
        (callbacks.for_accelerate, "accelerate is not installed; pip install 'tracehunch[transformers]'"),
        (callbacks.for_lightning, "lightning is not installed; pip install 'tracehunch[lightning]'"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, says: str
) -> None:
    monkeypatch.setattr(missing, "find_spec", lambda _: None)
    with pytest.raises(CaptureError) as told:
        make(tmp_path / "t.json.gz")
    assert str(told.value) == says
