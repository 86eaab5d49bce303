"""The handler in ``accelerator.profile``: updates are counted, not batches, and no hook stays."""

from __future__ import annotations

import gzip
import json
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch import callbacks
from tracehunch.capture.frameworks.updates import Updates

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")


def _train(handler: Any, *, batches: int = 16, fails_at: int = -1) -> tuple[list[float], Any]:
    torch.manual_seed(0)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    model, optimizer, loader = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1), loader)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)  # wraps optimizer.step of its own
    losses: list[float] = []
    with nullcontext() if handler is None else accelerator.profile(handler) as profiler:
        for index, (x, y) in enumerate(loader):
            if index in (batches, fails_at):
                break
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(x), y)
                accelerator.backward(loss)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(loss.item())
            if profiler is not None:
                profiler.step()
        if index == fails_at:
            raise OSError("the disk is gone")
    return losses, profiler


def _hooks() -> tuple[int, int]:
    optimizers, modules = import_module("torch.optim.optimizer"), import_module("torch.nn.modules.module")
    return len(optimizers._global_optimizer_post_hooks), len(modules._global_forward_pre_hooks)


def test_a_step_is_an_update_and_the_training_is_as_without(
    tmp_path: Path, count: Any, steps: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = callbacks.for_accelerate(tmp_path / "t.json.gz", guess={"sdpa.backend": "none"})
    losses, profiler = _train(handler)
    names = count(tmp_path / "t.json.gz")
    assert len(steps(names)) == 3
    assert names["Optimizer.step#SGD.step"] == names["Optimizer.zero_grad#SGD.zero_grad"] == 3
    assert names["aten::mse_loss"] == 6
    assert "held" in capsys.readouterr().out
    assert [one.claim.key for one in profiler.look.verdict.held] == ["sdpa.backend"]
    assert _hooks() == (0, 0)
    assert losses == _train(None)[0]
    assert len(losses) == 16


def test_no_optimizer_step_is_cut_in_two(tmp_path: Path) -> None:
    _train(callbacks.for_accelerate(tmp_path / "t.json.gz"))
    events = json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"]
    spans = [
        (one["name"].partition("#")[0], one["ts"], one["ts"] + one["dur"])
        for one in events
        if one.get("cat") == "user_annotation"
    ]
    whole = [(start, end) for name, start, end in spans if name == "ProfilerStep"]
    updates = [(start, end) for name, start, end in spans if name == "Optimizer.step"]
    assert len(updates) == len(whole) == 3
    assert all(any(low <= start and end <= high for low, high in whole) for start, end in updates)


def test_a_training_that_raises_leaves_a_whole_trace(
    tmp_path: Path, count: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OSError, match="the disk is gone"):
        _train(callbacks.for_accelerate(tmp_path / "t.json.gz"), fails_at=9)
    assert count(tmp_path / "t.json.gz")["Optimizer.step#SGD.step"] == 1
    assert "ended after 1 of 3 steps" in capsys.readouterr().out
    assert _hooks() == (0, 0)


def test_inference_counts_the_calls_of_step(tmp_path: Path, count: Any, steps: Any) -> None:
    accelerator = accelerate.Accelerator(cpu=True)
    model = accelerator.prepare(torch.nn.Linear(8, 8))
    handler = callbacks.for_accelerate(tmp_path / "t.json.gz", steps=2)
    with accelerator.profile(handler) as profiler, torch.no_grad():
        for _ in range(8):
            model(torch.ones(1, 8))
            profiler.step()
    names = count(tmp_path / "t.json.gz")
    assert (len(steps(names)), names["aten::linear"]) == (2, 2)


def test_a_second_optimizer_does_not_count_its_steps_again() -> None:
    ended: list[int] = []
    updates = Updates(lambda: ended.append(1))
    nets = [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    for _ in range(3):
        for net, optimizer in zip(nets, optimizers, strict=True):
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    updates.end_step()
    updates.detach()
    assert len(ended) == 3
    assert _hooks() == (0, 0)
