"""Programs that leave the recorded thread, process, GPU or memory: none ends the process or misleads."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.capture.program import record_call, record_program
from tracehunch.errors import CaptureError

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tracehunch.predict.program.calls import OpCall, Program


LOADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset

def build():
    scale = torch.ones(1, device="cuda")
    loader = DataLoader(TensorDataset(torch.arange(8.0)), 4, shuffle=True, num_workers=2, pin_memory=True)

    def epoch():
        for (batch,) in loader:
            batch.cuda(non_blocking=True) * scale
        assert loader.num_workers == 2 and loader.pin_memory

    return epoch
"""


def on_gpu(*shape: int) -> Any:
    return torch.randn(*shape, device="cuda")


def stops(run: Callable[[], object]) -> str:
    """Return the one reason why the recording of a call stops."""
    (found,) = record_call(run).obstacles
    assert found.stops
    assert found.remedy
    return found.reason


def copies(program: Program) -> list[OpCall]:
    return [call for call in program.calls if {*call.devices, *call.output_devices} == {"cpu", "cuda"}]


def test_another_thread_stops_the_recording(capfd: pytest.CaptureFixture[str]) -> None:
    layer = torch.nn.Linear(4, 4)

    def run() -> None:
        other = threading.Thread(target=layer, args=(on_gpu(2, 4),))
        other.start()
        other.join()

    assert "thread" in stops(run)
    assert "Traceback" not in capfd.readouterr().err


def test_a_trace_inside_the_program_stops_the_recording() -> None:
    layer = torch.nn.Linear(4, 4)
    assert "traced" in stops(lambda: torch.export.export(layer, (on_gpu(2, 4),)))


def test_graphs_and_ranks_stop_the_recording() -> None:
    assert "CUDA graph" in stops(lambda: torch.cuda.CUDAGraph())  # noqa: PLW0108  # looked up when called
    assert "ranks" in stops(lambda: torch.distributed.init_process_group("gloo", rank=0, world_size=1))


def test_pinned_memory_is_known_in_views_and_in_copies_both_ways() -> None:
    def run() -> None:
        torch.ones(64, 4, device="cpu").pin_memory()[8:].cuda()
        torch.ones(64, 4, device="cpu", pin_memory=True).to("cuda", non_blocking=True)
        torch.ones(64, 4, device="cpu").cuda()
        on_gpu(4).to("cpu", non_blocking=True)
        on_gpu(4).to("cpu")

    found = [call.options.get("pinned", False) for call in copies(record_call(run))]
    assert found == [True, True, False, True, False]


def test_a_loader_with_workers_loads_here_and_pins(tmp_path: Path) -> None:
    (tmp_path / "loads.py").write_text(LOADER)
    found = copies(record_program("loads:build", search=tmp_path))
    assert [call.options.get("pinned") for call in found] == [True, True]


def test_a_list_in_a_subscript_is_a_copy_and_known() -> None:
    def run() -> Any:
        x = torch.arange(6, device="cuda").view(2, 3)
        x[:, [0, 2]] = 9
        return x * 2 if 9 in x[:, [2]] else None

    program = record_call(run)
    assert not program.obstacles
    assert [call.op for call in copies(program)][:2] == ["aten::_to_copy"] * 2
    assert program.calls[-1].op == "aten::mul"


@pytest.mark.parametrize(
    ("place", "ops"),
    [
        (0, {"fill_"}),
        ((slice(None), 1), {"fill_"}),
        ((0, 1), {"copy_"}),  # one element, from the host
        ("above", {"masked_fill_"}),
        ((slice(None), "row"), {"masked_fill_"}),
        ([0, 2], {"_to_copy", "index_put_"}),
    ],
)
def test_a_number_that_is_written_stays_on_the_host(place: Any, ops: set[str]) -> None:
    def run() -> None:
        x = torch.zeros(4, 8, device="cuda")
        masks = {"above": x > 1, "row": x[0] > 1}
        named = place if isinstance(place, tuple) else (place,)
        with torch.profiler.record_function("write"):
            x[tuple(masks.get(one, one) if isinstance(one, str) else one for one in named)] = 3.0

    program = record_call(run)
    assert not program.obstacles
    written = {call.op.removeprefix("aten::") for call in program.calls if "write" in call.scopes}
    assert written - {"select", "slice", "unsqueeze", "lift_fresh"} == ops


def test_what_a_mask_has_filled_is_known() -> None:
    def run() -> object:
        x = torch.zeros(4, 8, device="cuda")
        x[torch.tensor([True, False, True, False], device="cuda"), 2:] = 3.0
        return x[x > 1].sqrt()

    program = record_call(run)
    assert not program.obstacles
    assert program.calls[-1].outputs[0].shape == (12,)


def test_a_number_written_to_a_copy_is_a_fill_in_the_gradient_too() -> None:
    weight, mask = torch.randn(4, 8, requires_grad=True), torch.rand(4, 8) > 0.5

    def run() -> None:
        weight.index_put((mask,), torch.tensor(2.0, device="cpu")).sum().backward()

    ops = [call.op for call in record_call(run).calls]
    assert ops.count("aten::masked_fill_") == 2
    assert "aten::index_put" not in ops


def test_what_is_scripted_is_recorded_as_it_is_written(tmp_path: Path) -> None:
    text = """
import torch

def build():
    layer = torch.jit.script(torch.nn.Linear(8, 8).cuda())
    traced = torch.jit.trace(torch.nn.Linear(8, 8).cuda(), torch.randn(2, 8, device="cuda"))

    @torch.jit.script
    def gate(x):
        return x * torch.sigmoid(x)

    return lambda: gate(traced(layer(torch.randn(2, 8, device="cuda"))))
"""
    (tmp_path / "scripted.py").write_text(text, encoding="utf-8")
    program = record_program("scripted:build", search=tmp_path)
    assert [call.op for call in program.calls].count("aten::addmm") == 2
    assert program.calls[-1].op == "aten::mul"
    assert all("TorchScript" in one.reason and not one.stops for one in program.obstacles)
    assert program.obstacles


def test_streams_ranges_and_replicas_change_nothing() -> None:
    layer = torch.nn.DataParallel(torch.nn.Linear(4, 4))

    def run() -> None:
        with torch.cuda.nvtx.range("forward"), torch.cuda.stream(torch.cuda.Stream()):
            layer(on_gpu(2, 4)).record_stream(torch.cuda.current_stream())

    assert [call.op for call in record_call(run).calls] == ["aten::randn", "aten::t", "aten::addmm"]


def test_what_is_yet_to_run_or_ends_the_program_is_an_error() -> None:
    def items() -> Any:
        yield on_gpu(2)

    with pytest.raises(CaptureError, match="a generator: nothing of it has run"):
        record_call(items)
    with pytest.raises(CaptureError, match="SystemExit: 3"):
        record_call(lambda: sys.exit(3))
    assert "calls nothing" in record_call(lambda: None).obstacles[0].reason


def test_a_model_on_meta_is_on_the_gpu_with_all_else(tmp_path: Path) -> None:
    (tmp_path / "on_meta.py").write_text(
        "import torch\n"
        "def build():\n"
        "    with torch.device('meta'):\n"
        "        model = torch.nn.Linear(4, 4)\n"
        "    return model, (torch.randn(2, 4),)\n"
    )
    program = record_program("on_meta:build", search=tmp_path)
    assert {place for call in program.calls for place in call.devices} == {"cuda"}


def test_lines_are_the_programs_not_those_of_what_records_it(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(
        "import torch\ndef build():\n    return torch.nn.Linear(4, 4), (torch.randn(2, 4),)\n"
    )
    program = record_program("bare:build", search=tmp_path)
    assert {call.line for call in program.calls} == {""}


def test_the_program_has_a_command_line_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text(
        "import sys\nimport torch\n"
        "assert sys.argv == ['json.py']\n"
        "def build():\n    return torch.relu, (torch.ones(2),)\n"
    )
    monkeypatch.setattr(sys, "argv", ["tracehunch", "guess", "json.py:build"])
    before = sys.modules["json"]
    assert record_program("json.py:build", search=tmp_path).calls
    assert sys.modules["json"] is before
