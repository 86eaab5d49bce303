"""Programs recorded without a GPU: which calls, from where, in which phase, and what stops a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tracehunch.capture.program import record_call, record_program
from tracehunch.errors import CaptureError

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from pathlib import Path

    from tracehunch.predict.program.calls import Program

PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(F.silu(self.up(x)))  # here: block


def on_gpu():
    return nn.Sequential(Block(), nn.LayerNorm(16)).cuda(), (torch.randn(4, 16, device="cuda"),)


def without_devices():
    return nn.Sequential(Block(), nn.LayerNorm(16)), (torch.randn(4, 16),)


def training():
    model = nn.Sequential(nn.Linear(16, 16), Block(), nn.Dropout(0.1), nn.Linear(16, 3)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = torch.randn(8, 16), torch.randint(0, 3, (8,), device="cuda")
    seen = []

    def step():
        optimizer.zero_grad()
        with torch.profiler.record_function("loss"):
            loss = F.cross_entropy(model(x.cuda(non_blocking=True)), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen.append(loss.item())
        print(f"{loss.item():.3f}")

    return step


def mixed_precision():
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4)).cuda()
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cuda")
    x = torch.randn(8, 16, device="cuda")

    def step():
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x).softmax(-1).sum() + model(x).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def routed():
    x = torch.randn(64, 8, device="cuda")

    def forward():
        rows = torch.where(x.sum(1) > 0)[0]  # here: routed
        return x[rows] * 2 if len(rows) > 1 else x

    return forward


def branching():
    x = torch.randn(4, device="cuda")

    def forward():
        total = x.sum().item() * 2
        return x if total > 3 else -x  # here: branching

    return forward


def counted():
    x = torch.randint(0, 9, (4,), device="cuda")
    return lambda: torch.zeros(x.max().item(), device="cuda")  # here: counted


def masked_by_constants():
    x, mask = torch.randn(4, device="cuda"), torch.tensor([True, False, True, True], device="cuda")

    def forward():
        assert not mask.all()
        return x[mask] * 2

    return forward


def broken():
    return nn.Linear(4, 4).cuda(), (torch.randn(2, 5, device="cuda"),)


def apart():
    x = torch.randn(4, device="cuda")
    return lambda: x + torch.ones(4)


def recurrent():
    model = nn.LSTM(8, 16, 2).cuda()
    return lambda x: model(x)[0].sum().backward(), (torch.randn(5, 3, 8, device="cuda"),)


def convolution():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).cuda().eval()
    return torch.inference_mode()(model), (torch.randn(2, 3, 8, 8, device="cuda"),)


def attention():
    q = torch.randn(2, 4, 16, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    causal = torch.ones(16, 16, dtype=torch.bool, device="cuda").tril()

    def step():
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
            F.scaled_dot_product_attention(q, q * 1, q * 2, attn_mask=causal, scale=0.5).sum().backward()

    return step


def compiled():
    return torch.compile(nn.Linear(4, 4).cuda()), (torch.randn(2, 4, device="cuda"),)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("program")
    (made / "prog.py").write_text(PROGRAM)
    return made


def line(name: str) -> str:
    """Where the program above has the comment "here: name"."""
    (number,) = (at for at, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith(f"# here: {name}"))
    return f"prog.py:{number}"


def ops(program: Program, phase: str = "") -> list[str]:
    return [call.op.removeprefix("aten::") for call in program.calls if phase in ("", call.phase)]


def test_a_forward_is_recorded_with_its_modules_and_lines(folder: Path) -> None:
    program = record_program("prog:on_gpu", search=folder)
    by_op = {call.op: call for call in program.calls}
    assert [op for op in ops(program) if op in ("addmm", "silu", "add", "native_layer_norm")] == [
        "addmm", "silu", "addmm", "add", "native_layer_norm",
    ]  # fmt: skip
    assert [call.module for call in program.calls if call.op == "aten::addmm"] == ["0.up", "0.down"]
    assert (by_op["aten::silu"].module, by_op["aten::silu"].module_type) == ("0", "Block")
    assert by_op["aten::silu"].line == line("block")
    assert {place for call in program.calls for place in (*call.devices, *call.output_devices)} == {"cuda"}
    assert by_op["aten::addmm"].tensors[1].shape == (4, 32)
    assert program.parameters == 2 * 16 * 32 + 32 + 16 + 2 * 16
    assert not program.obstacles


def test_a_program_without_devices_counts_as_on_the_gpu(folder: Path) -> None:
    there = record_program("prog:on_gpu", search=folder)
    nowhere = record_program("prog:without_devices", search=folder)
    assert [(call.op, call.tensors, call.devices) for call in nowhere.calls] == [
        (call.op, call.tensors, call.devices) for call in there.calls
    ]


def test_a_training_step_has_three_phases(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = record_program("prog:training", search=folder, warmup=1)
    assert "zeros_like" not in ops(program)  # the optimizer's state is there from the first run
    first = program.calls[0]
    assert (first.op, first.devices, first.output_devices) == ("aten::_to_copy", ("cpu",), ("cuda",))
    assert first.options["non_blocking"] is True
    assert "native_dropout" in ops(program, "forward")
    backward = [call for call in program.calls if call.phase == "backward" and call.op == "aten::mm"]
    assert [call.module for call in backward] == [
        "3", "3", "1.down", "1.down", "1.up", "1.up", "0",
    ]  # fmt: skip
    assert "add_" in ops(program, "backward")  # autograd sums in place what only it holds
    assert "_foreach_addcdiv_" in ops(program, "optimizer")
    assert {call.scopes for call in program.calls if call.op == "aten::nll_loss_forward"} == {("loss",)}
    assert ops(program)[-2:] == ["_local_scalar_dense"] * 2
    assert not program.obstacles
    assert "unknown" in capsys.readouterr().out


def test_values_change_nothing_but_what_is_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without = record_program("prog:training", search=folder, warmup=1)
    with_values = record_program("prog:training", search=folder, warmup=1, values=True)
    assert with_values.calls == without.calls
    assert float(capsys.readouterr().out.split()[-1]) > 0


def test_autocast_casts_each_parameter_once(folder: Path) -> None:
    program = record_program("prog:mixed_precision", search=folder)
    casts = [call.tensors[0].shape for call in program.calls if call.op == "aten::_to_copy"]
    assert casts.count((16, 16)) == 2  # to half, and its gradient back
    assert casts.count((8, 16)) == 2  # x is no parameter: cast each time
    softmax = next(call for call in program.calls if call.op == "aten::_softmax")
    assert softmax.options["half_to_float"] is True
    assert softmax.autocast
    assert "_amp_update_scale_" in ops(program)
    assert not program.obstacles


def test_sizes_that_depend_on_values_stop_with_the_line(folder: Path) -> None:
    program = record_program("prog:routed", search=folder)
    (told,) = program.obstacles
    assert told.stops
    assert (told.line, "nonzero" in told.reason, "--values" in told.remedy) == (line("routed"), True, True)
    followed = record_program("prog:routed", search=folder, values=True)
    assert not followed.obstacles
    assert ops(followed)[-1] == "mul"


@pytest.mark.parametrize("name", ["branching", "counted"])
def test_a_number_that_decides_stops_where_it_decides(folder: Path, name: str) -> None:
    program = record_program(f"prog:{name}", search=folder)
    assert [(told.stops, told.line) for told in program.obstacles] == [(True, line(name))]
    assert "_local_scalar_dense" in ops(program)


def test_masks_made_from_constants_are_known(folder: Path) -> None:
    program = record_program("prog:masked_by_constants", search=folder)
    assert not program.obstacles
    assert program.calls[-1].tensors[0].shape == (3,)


def test_errors_of_the_program_are_told_in_a_line(folder: Path) -> None:
    with pytest.raises(CaptureError, match="prog:broken cannot run: RuntimeError"):
        record_program("prog:broken", search=folder)
    with pytest.raises(CaptureError, match="move all tensors of the call to one device"):
        record_program("prog:apart", search=folder)


def test_recurrent_layers_are_one_call_of_cudnn(folder: Path) -> None:
    program = record_program("prog:recurrent", search=folder)
    assert ops(program).count("_cudnn_rnn") == 1
    backward = next(call for call in program.calls if call.op == "aten::_cudnn_rnn_backward")
    assert backward.outputs[0].shape == (5, 3, 8)


def test_inference_mode_sees_what_no_grad_sees(folder: Path) -> None:
    program = record_program("prog:convolution", search=folder)
    assert [op for op in ops(program) if op not in ("empty", "view")] == [
        "convolution", "cudnn_batch_norm", "relu",
    ]  # fmt: skip


def test_attention_is_one_call_each_way(folder: Path) -> None:
    program = record_program("prog:attention", search=folder)
    forward, backward = (call for call in program.calls if call.sdpa is not None)
    assert (forward.phase, backward.phase) == ("forward", "backward")
    assert forward.pinned == ("efficient",)
    assert forward.sdpa == backward.sdpa
    sdpa = forward.sdpa
    assert sdpa is not None
    assert (sdpa.scale, sdpa.mask_content, sdpa.requires_grad) == (0.5, "causal", True)
    assert forward.outputs[0].strides == (16 * 4 * 64, 64, 4 * 64, 1)  # efficient fills (B, L, H, D)
    assert len(backward.outputs) == 3


@pytest.mark.parametrize("reentrant", [False, True])
def test_attention_in_a_checkpoint_is_called_forward_twice(*, reentrant: bool) -> None:
    q = torch.randn(2, 4, 16, 64, requires_grad=True)
    attend = torch.nn.functional.scaled_dot_product_attention

    def step(q: torch.Tensor) -> None:
        made = torch.utils.checkpoint.checkpoint(lambda x: attend(x, x, x), q, use_reentrant=reentrant)
        made.sum().backward()

    program = record_call(step, (q,))
    phases = [call.phase for call in program.calls if call.sdpa is not None]
    assert phases == ["forward", "forward", "backward"]


def test_compiled_code_is_recorded_as_it_was_written(folder: Path) -> None:
    program = record_program("prog:compiled", search=folder)
    assert ops(program) == ["t", "addmm"]
    assert [(told.stops, "--compile" in told.remedy) for told in program.obstacles] == [(False, True)]


def test_nothing_is_left_behind(folder: Path) -> None:
    before = (torch.cuda.is_available(), torch.Tensor.to, torch.compile, torch.nn.Module.__call__)
    record_program("prog:mixed_precision", search=folder)
    after = (torch.cuda.is_available(), torch.Tensor.to, torch.compile, torch.nn.Module.__call__)
    assert before == after
    layer = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(), torch.nn.LSTM(2, 2))
    assert layer(torch.ones(3, 2))[0].shape == (3, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


def test_a_call_gets_its_tensors_back() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    weight, was = model[0].weight, model[0].weight.detach().clone()
    mean = model[1].running_mean.clone()

    def step(x: object) -> None:
        model(x).square().mean().backward()
        optimizer.step()

    program = record_call(step, (torch.randn(3, 4),))
    assert {call.phase for call in program.calls} == {"forward", "backward", "optimizer"}
    assert all(
        place == "cuda" for call in program.calls for place in call.devices if call.phase != "optimizer"
    )
    assert model[0].weight is weight
    assert weight.grad is None
    assert not optimizer.state
    assert torch.equal(weight, was)
    assert torch.equal(model[1].running_mean, mean)
    step(torch.randn(3, 4))
    assert not torch.equal(weight, was)


def test_layers_keep_their_fast_path_where_no_device_is_named(tmp_path: Path) -> None:
    (tmp_path / "fast_layers.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "def build():\n"
        "    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)\n"
        "    return torch.no_grad()(nn.TransformerEncoder(layer, 2).eval()), (torch.randn(2, 8, 32),)\n"
    )
    asked = torch.overrides.has_torch_function
    ops = [call.op for call in record_program("fast_layers:build", search=tmp_path).calls]
    assert ops.count("aten::_addmm_activation") == 2  # of the fast path alone
    assert torch.overrides.has_torch_function is asked
