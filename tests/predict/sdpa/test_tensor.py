import pytest

from tracehunch.errors import GuessError
from tracehunch.predict.sdpa.tensor import LAYOUTS, dtype_name, tensor


def made(torch, layout, shape):
    b, h, s, d = shape
    if layout == "bshd":
        return torch.empty(b, s, h, d).transpose(1, 2)
    if layout == "strided_last":
        return torch.empty(b, h, d, s).transpose(-1, -2)
    if layout == "expand_b":
        return torch.empty(1, h, s, d).expand(b, h, s, d)
    return torch.empty(b, h, s, d)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "shape", [(2, 3, 5, 8), (1, 1, 1, 1), (4, 1, 7, 64), (2, 3, 1, 8), (2, 3, 5, 1), (1, 2, 0, 8)]
)
def test_layouts_have_the_strides_that_torch_makes(layout, shape):
    torch = pytest.importorskip("torch")
    spec = tensor(shape, "bfloat16", layout)
    there = made(torch, layout, shape)
    assert spec.shape == tuple(there.shape)
    assert spec.stride == there.stride()


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("bf16", "bfloat16"),
        ("torch.float16", "float16"),
        ("fp32", "float32"),
        ("float64", "float64"),
        ("FP16", "float16"),
    ],
)
def test_data_types_have_one_name(written, name):
    assert dtype_name(written) == name


def test_what_is_not_known_is_an_error():
    with pytest.raises(GuessError, match="int3"):
        dtype_name("int3")
    with pytest.raises(GuessError, match="layout 'zigzag'"):
        tensor((1, 2, 3, 4), "bf16", "zigzag")
    with pytest.raises(GuessError, match="3 dimensions"):
        tensor((2, 3, 4), "bf16", "bshd")
