"""Tensors made of arrays, tensors and lists on a GPU that is not there: one copy each, as on one."""

import pytest

from tracehunch.capture.program import record_call
from tracehunch.errors import CaptureError

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

ARRAY = np.ones(3, dtype=np.float32)


def ops(run):
    """Return the copies and the rest of a run's calls on the GPU."""
    calls = record_call(run, (torch.ones(3),)).calls
    return [call.op.removeprefix("aten::") for call in calls if "cuda" in call.output_devices]


@pytest.mark.parametrize(
    "make",
    [
        lambda _: torch.tensor(ARRAY, device="cuda"),
        lambda _: torch.as_tensor(ARRAY, device="cuda"),
        lambda _: torch.asarray(ARRAY, device="cuda"),
        lambda _: torch.tensor([1.0, 2.0, 3.0], device="cuda"),
        lambda _: torch.tensor(2.0, device="cuda"),
        lambda x: x.new_tensor(ARRAY),
        lambda x: x.new_tensor([1.0, 2.0, 3.0]),
        lambda _: torch.as_tensor(torch.ones(3, device="cpu"), device="cuda"),
    ],
)
def test_data_is_copied_to_the_gpu_once(make):
    assert ops(lambda x: make(x).mul(x)) == ["_to_copy", "mul"]


def test_a_new_tensor_is_of_the_others_type():
    call = record_call(lambda x: x.new_tensor([1.0, 2.0]), (torch.ones(3, dtype=torch.int8),)).calls[-1]
    assert call.outputs[0].dtype == "int8"


def test_what_is_there_already_is_taken_as_it_is():
    assert ops(lambda x: torch.as_tensor(x, device="cuda").mul(x)) == ["mul"]


def test_no_function_of_torch_stays_changed():
    before = torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor
    ops(lambda x: x.mul(2))
    assert before == (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor)
    with torch.device("meta"):
        assert torch.tensor([1.0]).device.type == "meta"


def test_factors_of_two_types_are_refused_as_by_a_gpu():
    weight = torch.ones(3, 3, dtype=torch.bfloat16)
    with pytest.raises(CaptureError, match="must have the same dtype, but got float32 and bfloat16"):
        record_call(lambda x: x[None] @ weight, (torch.ones(3),))
