"""torch.compile without a GPU: regions and kernels as traces of an H200 show them."""

import gzip
import json
from collections import Counter
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from traceback import FrameSummary
from types import SimpleNamespace

import pytest

from tracehunch.errors import CaptureError
from tracehunch.predict.environment import environment
from tracehunch.predict.program.compiled_guess import claims, guess_compiled

torch = pytest.importorskip("torch")

from tracehunch.capture.compiled import (  # noqa: E402  # loads with torch
    events,
    machine,
    record_compiled,
    record_compiled_call,
)

HERE = Path(__file__).parent
OPS = HERE.parents[1] / "data" / "h200" / "ops"
H200 = environment("h200", "2.11")


@cache
def recorded(name: str, mode: str = "default"):
    return record_compiled(f"programs:{name}", search=HERE, env=H200, mode=mode)


def launched(name: str) -> Counter:
    """Count the GPU activities of one call in a recorded trace, a few lines over its JSON."""
    events = json.loads(gzip.decompress((OPS / f"{name}.json.gz").read_bytes()))["traceEvents"]
    steps = sum(
        one["name"].startswith("ProfilerStep") and one.get("cat") == "user_annotation" for one in events
    )
    found = Counter(one["cat"] for one in events if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"))
    return Counter({cat: n // steps for cat, n in found.items()})


@pytest.mark.parametrize(
    ("program", "trace"),
    [("geglu", "geglu_compiled"), ("naive", "naive_compiled"), ("matmul_add", "matmul_add_4096_compiled")],
)
def test_launches_are_those_of_a_trace(program, trace):
    found, truth = guess_compiled(recorded(program), H200).totals.amounts, launched(trace)
    assert (found.kernels, found.copies, found.memsets) == (
        truth["kernel"],
        truth["gpu_memcpy"],
        truth["gpu_memset"],
    )


def test_generated_kernel_is_named_as_in_a_trace_with_its_ops_and_bytes():
    (kernel,) = recorded("geglu").launches.values()
    assert kernel.name == "triton_poi_fused_gelu_mul_0"
    assert kernel.ops == ("gelu", "mul")
    assert kernel.bytes == 3 * 4096 * 2816 * 2  # two read, one written


def test_attention_by_hand_that_inductor_recognises_runs_as_sdpa():
    guess = guess_compiled(recorded("by_hand"), H200)
    assert [(one.backend, one.calls) for one in guess.sdpa] == [("cudnn", 1)]
    assert guess.totals.amounts.kernels == guess.compiled.regions[0].amounts.kernels == 1


def test_graph_break_has_reason_and_line():
    found = recorded("broken")
    assert [region.phase for region in found.regions] == ["forward", "forward"]
    (one,) = found.breaks
    assert "graph_break" in one.reason
    source = (HERE / "programs.py").read_text(encoding="utf-8").splitlines()
    (at,) = (number for number, line in enumerate(source, 1) if "graph_break()" in line)
    assert one.line == f"programs.py:{at}"
    assert "compiled.graph_breaks" not in [
        claim.key for claim in claims(guess_compiled(found, H200).compiled, "s")
    ]


def test_code_that_compiles_again_says_which_guard_failed():
    found = recorded("counts")
    assert found.recompiles
    assert "self" in found.recompiles[0].reason
    assert {one.key for one in claims(guess_compiled(found, H200).compiled, "step")} >= {"compiled"}


def test_training_compiles_forward_and_backward_and_casts_for_autocast():
    found = recorded("trains")
    assert {region.phase for region in found.regions} == {"forward", "backward"}
    assert [region.unknown for region in found.regions if region.unknown] == []
    assert any("_to_copy" in kernel.ops for kernel in found.launches.values())
    phases = {call.phase for at, call in enumerate(found.program.calls) if at in found.launches}
    assert {"forward", "backward", "optimizer"} >= phases >= {"forward", "backward"}
    guess = guess_compiled(found, H200)
    assert not guess.totals.amounts.untold


def test_gradients_reach_through_operations_that_are_composed_of_others():
    found = recorded("ends_in_composed_operations")
    products = [call.op for call in found.program.calls if call.op in ("aten::mm", "aten::addmm")]
    assert len(products) == 8  # of each branch one forward and one for the gradient of its weight
    assert not found.program.obstacles


def test_a_gradient_that_is_lost_is_told(monkeypatch):
    monkeypatch.setattr(machine, "composed", lambda _: nullcontext())
    found = record_compiled("programs:ends_in_composed_operations", search=HERE, env=H200)
    reasons = [one.reason for one in found.program.obstacles]
    assert "autograd knows no gradient of aten::nll_loss: the backward ends there" in reasons


def called(name: str) -> list[str]:
    return [call.op.removeprefix("aten::") for call in recorded(name).program.calls]


def test_attention_inside_a_module_runs_its_backend_as_on_a_gpu():
    ops = called("attends_in_a_module")  # a trace of nn.TransformerEncoder on an H200 has the same
    assert [op for op in ops if "attention" in op] == [
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_efficient_attention_backward",
    ]
    assert "bmm" not in ops


def test_attention_is_compiled_once_for_lengths_that_change():
    found = recorded("attends_to_three_lengths")
    assert len(found.regions) == 2  # one length, then any
    assert called("attends_to_three_lengths").count("_scaled_dot_product_efficient_attention") == 3


def test_a_cell_is_one_kernel_beside_its_products():
    found = recorded("steps_of_cells")
    assert [region.phase for region in found.regions] == ["forward", "backward"]
    assert [op for op in called("steps_of_cells") if op.startswith("_thnn")] == [
        "_thnn_fused_lstm_cell",
        "_thnn_fused_gru_cell",
        "_thnn_fused_gru_cell_backward",
        "_thnn_fused_lstm_cell_backward_impl",
    ]
    assert not found.notes


def test_attention_on_the_host_stays_there():
    found = recorded("attends_on_the_host")
    assert [region.unknown for region in found.regions] == [""]
    assert not found.program.obstacles
    assert [op for op in called("attends_on_the_host") if "efficient" in op] == []


def test_what_reads_a_value_is_no_code_to_compile():
    found = recorded("logs")
    assert not found.notes
    assert [region.phase for region in found.regions] == ["forward", "backward"]


def test_results_that_no_rule_tells_are_on_the_gpu():
    found = recorded("draws")
    *_, last = found.launches.values()
    assert "add" in last.ops
    assert not found.breaks


def test_what_is_compiled_inside_stays_and_the_rest_runs_as_ever():
    found = recorded("compiled_inside")
    (run,) = found.runs
    outside = [call.op for at, call in enumerate(found.program.calls) if not run.first <= at < run.end]
    assert "aten::clamp_min" in outside or "aten::relu" in outside


def test_a_compiled_function_under_a_decorator_stays_and_the_rest_runs_as_ever():
    found = recorded("calls_what_is_compiled")
    assert [kernel.ops for kernel in found.launches.values()] == [("mul", "add")]
    assert called("calls_what_is_compiled")[-1] == "cosh"


def test_a_decision_on_a_value_breaks_the_graph_and_is_followed():
    found = recorded("decides")
    assert found.breaks
    assert "aten::_local_scalar_dense" in [call.op for call in found.program.calls]


def test_replay_as_a_cuda_graph_is_told():
    assert all(region.replayed for region in recorded("geglu", "reduce-overhead").regions)
    assert not any(region.replayed for region in recorded("geglu").regions)


def test_a_mode_that_the_program_asks_for_is_told():
    found = recorded("has_a_mode_of_its_own")
    assert [region.replayed for region in found.regions] == [True]
    assert [call.op for call in found.program.calls if call.op == "aten::mm"] == ["aten::mm"]
    assert any(note.startswith("max-autotune") for note in found.notes)


def test_an_operation_that_writes_to_its_output_needs_no_rule_for_it():
    found = recorded("multiplies_in_fp8")
    assert not found.program.obstacles
    assert called("multiplies_in_fp8")[-2:] == ["_scaled_mm", "triton_poi_fused_relu_0"]


def test_constants_are_made_on_the_gpu_or_moved_while_it_is_compiled():
    found = recorded("has_constants")
    names = [kernel.name for kernel in found.launches.values()]
    assert names == ["triton_poi_fused_lift_fresh_mul_sub_0", "triton_poi_fused__to_copy_div_lift_fresh_1"]
    assert guess_compiled(found, H200).totals.amounts.copies == 0


def line_of(text: str) -> str:
    source = (HERE / "programs.py").read_text(encoding="utf-8").splitlines()
    (at,) = (number for number, line in enumerate(source, 1) if text in line)
    return f"programs.py:{at}"


@pytest.mark.parametrize(
    ("program", "said", "line", "advice"),
    [
        ("of_wrong_sizes", "RuntimeError: a and b must have same", "torch.relu(x @ w)", "by itself"),
        ("on_two_devices", "on the same device", "return lambda: x + y", "a GPU would refuse this too"),
        ("of_two_types", "RuntimeError: Expected out tensor to have dtype", "", "by itself"),
    ],
)
def test_an_error_of_the_programs_own_is_one_as_without_the_compiler(program, said, line, advice):
    with pytest.raises(CaptureError) as caught:
        recorded(program)
    assert caught.value.what == f"programs:{program} cannot run"
    assert said in caught.value.why
    assert caught.value.why.endswith(f"({line_of(line)})" if line else "instead")
    assert advice in caught.value.todo


def test_code_that_is_refused_is_told_with_its_line():
    (one,) = recorded("whole_or_not_at_all").program.obstacles
    assert one.stops
    assert "print" in one.reason
    assert one.line == line_of("print(x.shape)")


def test_a_program_that_calls_nothing_is_told():
    (one,) = recorded("returns_its_input").program.obstacles
    assert "calls nothing" in one.reason


def test_a_break_says_the_same_each_time_and_names_no_line_of_what_torch_puts_around_a_function():
    frame = FrameSummary(torch.utils._contextlib.__file__, 124, "decorate_context")
    reason = "Skip calling\n  Explanation: Skip `<function mean at 0x7f06e7ead900>`."
    one = events._break(SimpleNamespace(reason=reason, user_stack=[frame]))
    assert (one.reason, one.line) == ("Skip calling: Skip `<function mean>`", "")


def test_nothing_stays_changed():
    assert not torch.cuda.is_available() or torch.cuda.device_count()
    recorded("geglu")
    assert record_compiled_call(lambda x: x.sigmoid() * 2, (torch.ones(4),), env=H200).launches
    function = torch.compile(lambda x: x + 1, backend="eager")
    assert function(torch.ones(2)).tolist() == [2.0, 2.0]
    assert torch.ones(2).to(torch.float64).device.type == "cpu"


def test_unknown_target_is_told():
    with pytest.raises(CaptureError, match="has no"):
        record_compiled("programs:nothing", search=HERE, env=H200)


def test_breaks_at_stand_ins_are_not_the_programs() -> None:
    def ours(*files: str, reason: str = "Unsupported Tensor.item() call") -> bool:
        frames = [FrameSummary(file, 1, "run") for file in files]
        return events._is_ours(SimpleNamespace(reason=reason, user_stack=frames))

    mode = f"/env/{events._DEVICE_MODE}"
    assert not ours("/home/train.py", mode)
    assert not ours("/home/train.py")
    assert ours(mode)
    assert ours("/home/train.py", events.__file__)
    assert ours("/home/train.py", reason="cannot trace <class 'tracehunch.capture.x.Y'>")
