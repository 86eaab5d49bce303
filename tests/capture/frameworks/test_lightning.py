"""The callback in a real Lightning ``Trainer``, under both names of the package."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch import callbacks
from tracehunch.capture.frameworks import lightning as wrapper

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
pytest.importorskip("lightning.pytorch")
pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice on loaders and loggers


def _model(lightning: Any, fails_at: int) -> Any:
    class Regression(lightning.LightningModule):  # type: ignore[misc]  # its base is not typed here
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
            self.losses: list[float] = []

        def training_step(self, batch: Any, index: int) -> Any:
            if index == fails_at:
                raise OSError("the disk is gone")
            loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Regression()


def _fit(
    callback: Any, *, updates: int = 7, fails_at: int = -1, name: str = "lightning.pytorch"
) -> list[float]:
    lightning = import_module(name)
    torch.manual_seed(0)
    model = _model(lightning, fails_at)
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    trainer = lightning.Trainer(
        accelerator="cpu", max_steps=updates, accumulate_grad_batches=2, logger=False, callbacks=callback,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=4))
    return model.losses


def test_a_step_is_an_update_and_the_training_is_as_without(
    tmp_path: Path, count: Any, steps: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    callback = callbacks.for_lightning(tmp_path / "t.json.gz", guess={"sdpa.backend": "none"})
    losses = _fit(callback)
    names = count(tmp_path / "t.json.gz")
    assert len(steps(names)) == 3
    assert names["Optimizer.step#SGD.step"] == 3
    assert names["aten::mse_loss"] == 6
    assert "held" in capsys.readouterr().out
    assert [one.claim.key for one in callback.look.verdict.held] == ["sdpa.backend"]
    assert losses == _fit(None)
    assert len(losses) == 14


def test_a_training_that_raises_leaves_a_whole_trace(
    tmp_path: Path, count: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OSError, match="the disk is gone"):
        _fit(callbacks.for_lightning(tmp_path / "t.json.gz"), fails_at=9)
    assert count(tmp_path / "t.json.gz")["aten::mse_loss"] == 3  # the ninth batch was the first of its update
    assert "ended after 1 of 3 steps" in capsys.readouterr().out


def test_a_training_that_is_too_short_leaves_its_first_step(tmp_path: Path, count: Any, steps: Any) -> None:
    _fit(callbacks.for_lightning(tmp_path / "t.json.gz"), updates=2)
    names = count(tmp_path / "t.json.gz")
    assert (steps(names), names["aten::mse_loss"]) == (["ProfilerStep#0"], 2)


def test_it_can_be_sent_to_processes_that_a_strategy_spawns(tmp_path: Path) -> None:
    sent = pickle.dumps(callbacks.for_lightning(tmp_path / "t.json.gz", guess={"kernels": 5}))
    callback = pickle.loads(sent)  # noqa: S301  # made in the line before
    _fit(callback, updates=5)
    assert callback.trace_path == tmp_path / "t.json.gz"
    assert [one.key for one in callback.look.verdict.cannot_tell] == ["kernels"]


def test_under_its_other_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = pytest.importorskip("pytorch_lightning")
    monkeypatch.setattr(wrapper, "is_there", lambda name: name == "pytorch_lightning")
    callback = callbacks.for_lightning(tmp_path / "t.json.gz")
    assert isinstance(callback, other.Callback)
    _fit(callback, updates=5, name="pytorch_lightning")
    assert callback.trace_path is not None
