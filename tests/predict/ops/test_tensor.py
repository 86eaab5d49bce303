"""Strides as PyTorch has them."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehunch.errors import GuessError
from tracehunch.predict.ops import broadcast, tensor
from tracehunch.predict.ops.tensor import promoted

torch = pytest.importorskip("torch")

SIZES = st.lists(st.sampled_from([1, 1, 2, 3, 4, 6]), min_size=1, max_size=4)


@st.composite
def views(draw):
    """Return a tensor of PyTorch's that was permuted, narrowed and expanded, and ours."""
    shape = draw(SIZES)
    theirs, ours = torch.empty(shape), tensor(shape, "fp32")
    if draw(st.booleans()):
        order = draw(st.permutations(range(len(shape))))
        theirs, ours = theirs.permute(order), ours.permuted(order)
    if draw(st.booleans()):
        dim = draw(st.integers(0, len(shape) - 1))
        size = draw(st.integers(1, theirs.shape[dim]))
        theirs, ours = theirs.narrow(dim, 0, size), ours.narrowed(dim, size)
    if draw(st.booleans()):
        wider = [size if size != 1 else draw(st.sampled_from([1, 5])) for size in theirs.shape]
        theirs, ours = theirs.expand(wider), ours.expanded(wider)
    return theirs, ours


@given(views())
def test_shapes_strides_and_what_follows_from_them(pair):
    theirs, ours = pair
    assert ours.shape == tuple(theirs.shape)
    assert all(
        mine == stride
        for size, mine, stride in zip(theirs.shape, ours.strides, theirs.stride(), strict=True)
        if size > 1
    )
    assert ours.is_contiguous == theirs.is_contiguous()
    assert ours.is_dense == torch.ops.aten.is_non_overlapping_and_dense(theirs)


@settings(max_examples=300)
@given(views(), SIZES)
def test_views_exist_where_pytorch_has_them(pair, sizes):
    theirs, ours = pair
    left = theirs.numel() // math.prod(sizes) if theirs.numel() % math.prod(sizes) == 0 else 0
    if left == 0:
        return
    shape = (*sizes, left)
    try:
        expected = theirs.view(shape)
    except RuntimeError:
        assert ours.viewed(shape) is None
        return
    found = ours.viewed(shape)
    assert found is not None
    strides = zip(shape, found.strides, expected.stride(), strict=True)
    assert all(mine == stride for size, mine, stride in strides if size > 1)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("bf16", (2,)), ("fp32", (2,)), "fp32"),
        (("bf16", (2,)), ("fp16", (2,)), "fp32"),
        (("bf16", (2,)), ("fp32", ()), "bf16"),
        (("int64", (2,)), ("fp32", ()), "fp32"),
        (("bool", (2,)), ("int64", (2,)), "int64"),
        (("bf16", ()), ("fp32", ()), "fp32"),
    ],
)
def test_types_are_promoted_as_pytorch_does(first, second, expected):
    names = {
        "bf16": torch.bfloat16,
        "fp16": torch.float16,
        "fp32": torch.float32,
        "int64": torch.int64,
        "bool": torch.bool,
    }
    both = [torch.empty(shape, dtype=names[dtype]) for dtype, shape in (first, second)]
    assert torch.result_type(*both) == names[expected]
    assert promoted(*(tensor(shape, dtype) for dtype, shape in (first, second))) == expected


def test_what_does_not_broadcast_is_an_error():
    assert broadcast((4, 1, 3), (5, 1)) == (4, 5, 3)
    with pytest.raises(GuessError, match="do not broadcast"):
        broadcast((4,), (3,))


def test_malformed_tensors_are_errors():
    with pytest.raises(GuessError, match="negative"):
        tensor((-1,), "bf16")
    with pytest.raises(GuessError, match="do not fit"):
        tensor((2, 3), "bf16", strides=(1,))
    with pytest.raises(GuessError, match="not known"):
        tensor((2,), "complex64")
    with pytest.raises(GuessError, match="no view"):
        tensor((2, 3)).viewed((5,))


def test_bytes_in_memory_count_repeated_elements_once():
    row = tensor((1, 64), "bf16").expanded((512, 64))
    assert row.nbytes == 512 * 64 * 2
    assert row.stored_bytes == 64 * 2
