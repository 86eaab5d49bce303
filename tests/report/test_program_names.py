"""Names in a table's room: cut where they stay distinct."""

import pytest

from tracehunch.report.layout import Column, View
from tracehunch.report.program_names import room_for_names, short_names


def test_names_that_fit_stay_whole_and_else_aten_goes_first():
    names = ["aten::mm", "aten::native_layer_norm_backward"]
    assert short_names(names, 40) == names
    assert short_names(names, 26) == ["mm", "native_layer_norm_backward"]


@pytest.mark.parametrize("width", [12, 18, 27])
def test_kind_and_number_of_generated_kernels_stay_and_none_looks_like_another(width):
    names = [
        f"triton_{kind}_fused_native_layer_norm_view_{n}" for kind in ("poi", "red") for n in (1, 12, 123)
    ]
    short = short_names(names, width)
    assert all(len(one) <= width for one in short)
    assert len(set(short)) == len(names)
    assert [
        one.rsplit("_")[-1].endswith(name.rsplit("_")[-1]) for one, name in zip(short, names, strict=True)
    ]
    if width >= 27:
        assert all(one[:10] == name[:10] for one, name in zip(short, names, strict=True))


def test_names_that_differ_in_the_middle_are_cut_elsewhere():
    names = ["model.encoder.layers.attention.output", "model.encoder.blocks.attention.output"]
    short = short_names(names, 20)
    assert len(set(short)) == 2
    assert max(map(len, short)) <= 20


def test_room_is_what_other_columns_leave():
    columns = [Column("op", "left"), Column("calls"), Column("GPU time")]
    assert room_for_names(columns, [["x", "1", "127.60 us"]], View(80)) == 80 - 2 - (5 + 2) - (9 + 2)
    assert room_for_names(columns, [["x", "1", "127.60 us"]], View(20)) == 12
