from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehunch import units


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0 us"),
        (0.42, "0.420 us"),
        (5.335, "5.33 us"),
        (57.84, "57.84 us"),
        (127.57, "127.6 us"),
        (999.94, "999.9 us"),
        (999.96, "1.000 ms"),
        (1063.5, "1.063 ms"),
        (123_456, "123.5 ms"),
        (999_999, "1.000 s"),
        (2_310_000, "2.310 s"),
    ],
)
def test_times_keep_four_digits_and_change_unit_before_they_read_1000(us: float, text: str) -> None:
    assert units.time_us(us) == text


@given(st.floats(min_value=0.001, max_value=1e11))
def test_a_printed_time_is_within_a_thousandth_of_it(us: float) -> None:
    number, unit = units.time_us(us).split(" ")
    assert float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit] == pytest.approx(us, rel=1e-3, abs=5e-4)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(1062.7, 1066.5, "1.063-1.067 ms"), (5.0, 5.0, "5.00 us"), (900.0, 1100.0, "900.0 us - 1.100 ms")],
)
def test_ranges_name_the_unit_once(low: float, high: float, text: str) -> None:
    assert units.time_range_us(low, high) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0%"),
        (0.04, "<0.1%"),
        (8.44, "8.4%"),
        (62.5, "62%"),
        (99.2, "99.2%"),
        (99.97, ">99.9%"),
        (100, "100%"),
    ],
)
def test_a_percentage_is_never_rounded_to_none_or_all(value: float, text: str) -> None:
    assert units.percent(value) == text


def test_a_share_of_nothing_is_not_a_number() -> None:
    assert units.share(0, 0) == "-"


@pytest.mark.parametrize(
    ("n_bytes", "text"), [(0, "0 B"), (512, "512 B"), (49_152, "48 KiB"), (150_109_880_320, "139.8 GiB")]
)
def test_sizes(n_bytes: int, text: str) -> None:
    assert units.size(n_bytes) == text


def test_rates_counts_and_ratios() -> None:
    assert units.bandwidth(3.2e9) == "3.20 GB/s"
    assert units.flop_rate(412.3e12) == "412 TFLOP/s"
    assert units.ratio(45.34) == "45.3x"
    assert units.ratio(2.4567) == "2.46x"
    assert units.count(1265) == "1,265"
    assert units.count(2.5) == "2.5"
    assert units.plural(1, "copy", "copies") == "1 copy"
    assert units.plural(3, "copy", "copies") == "3 copies"
    assert units.join(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(
    ("us", "text"), [(127.5721, "127.572us"), (3219.93, "3.220ms"), (1_250_000, "1.250s"), (0, "0.000us")]
)
def test_the_profilers_own_notation(us: float, text: str) -> None:
    assert units.table_time_us(us) == text


def test_terminal_escapes_become_visible() -> None:
    assert units.printable("a\x1b[31mb\x9b\x07\n") == "a\\x1b[31mb\\x9b\\x07\\x0a"


def test_text_that_reorders_or_hides_becomes_visible() -> None:
    assert units.printable("user\u202egnp.exe\u200b\U000e0041") == "user\\u202egnp.exe\\u200b\\U000e0041"


def test_names_in_other_scripts_stay_as_they_are() -> None:
    assert units.printable("模型.前向 Прямой проход") == "模型.前向 Прямой проход"


@given(st.text(st.characters(), max_size=300))
def test_printable_text_can_be_encoded_and_holds_no_controls(text: str) -> None:
    shown = units.printable(text)
    shown.encode()
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in shown)
    assert units.printable(shown) == shown


def test_endless_names_are_cut_and_stay_apart() -> None:
    first, second = "k" * 65_000 + "1", "k" * 65_000 + "2"
    shown = {units.printable(first), units.printable(second)}
    assert len(shown) == 2
    assert all(len(text) < 1_700 and "65001 characters" in text for text in shown)


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=60), st.integers(3, 40))
def test_shortened_text_fits(text: str, width: int) -> None:
    assert units.cells(units.shorten(text, width)) <= width


def test_wide_characters_take_two_columns() -> None:
    assert units.cells("模型") == 4
    assert units.shorten("模型.前向模型.前向", 10) == "模型.前..."


@pytest.mark.parametrize(
    ("times", "texts"),
    [
        ([1063.5, 57.8, None], ["1,063.5 us", "57.8 us", ""]),
        ([3706.4, 13_900.0], ["3.71 ms", "13.90 ms"]),
        ([39_000.0, 22_700.0], ["39.0 ms", "22.7 ms"]),
        ([46_830.0, 3_640.0, 430.0], ["46.83 ms", "3.64 ms", "0.43 ms"]),
        ([44.1, 8.71], ["44.10 us", "8.71 us"]),
        ([20e6, 300e3], ["20.00 s", "0.30 s"]),
        ([20e6, 3.0], ["20.00 s", "3.00 us"]),  # one unit would leave nothing of the smaller
        ([0.0, 5.0], ["0.00 us", "5.00 us"]),
        ([], []),
    ],
)
def test_a_column_of_times_has_one_unit(times: list[float | None], texts: list[str]) -> None:
    assert units.time_column(times) == texts


@given(st.lists(st.floats(min_value=0.01, max_value=1e9), min_size=1))
def test_times_of_a_column_are_read_back_in_their_order(times: list[float]) -> None:
    scale = {"us": 1, "ms": 1e3, "s": 1e6}
    read = [
        float(text.split(" ")[0].replace(",", "")) * scale[text.split(" ")[1]]
        for text in units.time_column(times)
    ]
    for us, shown in zip(times, read, strict=True):
        assert shown == pytest.approx(us, rel=0.06, abs=0.06)


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("512", 512),
        ("4GB", 4_000_000_000),
        ("4 GiB", 4 << 30),
        ("2.5g", 2_500_000_000),
        (" 512 mib ", 512 << 20),
        ("1TB", 10**12),
        (".5k", 500),
        ("0", 0),
        ("", None),
        ("GB", None),
        ("-1GB", None),
        ("4 apples", None),
        ("1e3", None),
        ("٤GB", None),
    ],
)
def test_sizes_as_people_write_them(text, n_bytes):
    assert units.bytes_of(text) == n_bytes
