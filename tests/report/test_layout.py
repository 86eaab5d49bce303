from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracehunch.report.layout import Column, Span, View, draw, paragraph, table, wrap
from tracehunch.units import cells


@given(
    st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp", "Cf", "Mn")), max_size=200),
    st.integers(5, 80),
)
def test_wrapped_lines_fit_and_lose_no_word(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cells(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(text.split())


def test_without_colour_there_is_no_escape_sequence() -> None:
    lines = [(Span("bad", "bold red"), " news")]
    assert draw(lines, View(colour=False)) == "bad news\n"
    assert draw(lines, View(colour=True)) == "\x1b[1;31mbad\x1b[0m news\n"


def test_an_ascii_output_gets_ascii() -> None:
    assert draw([("模 · →",)], View(unicode=False)) == "\\u6a21 - ->\n"


def test_a_paragraph_hangs_under_its_label() -> None:
    drawn = draw(paragraph("one two three", View(width=20), first=("fix: ",), indent=6), View())
    assert drawn == "fix:  one two three\n"
    drawn = draw(paragraph("one two three four five", View(width=26), first=("fix: ",), indent=6), View())
    assert drawn == "fix:  one two three four\n      five\n"


def test_a_table_fits_its_width_by_shortening_names_and_never_numbers() -> None:
    columns = [Column("name", "left"), Column("time")]
    drawn = draw(table(columns, [["n" * 90, "12.34 ms"]], View(width=40)), View())
    assert all(len(line) <= 40 for line in drawn.splitlines())
    assert "..." in drawn
    assert "12.34 ms" in drawn
