import io

import pytest

from tracehunch.report.screen import screen


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM"):
        monkeypatch.delenv(name, raising=False)


def test_a_file_has_80_columns_and_no_colour():
    view = screen(io.StringIO())
    assert (view.width, view.colour, view.unicode, view.interactive) == (80, False, True, False)


def test_a_terminal_has_its_own(monkeypatch):
    monkeypatch.setenv("COLUMNS", "132")
    view = screen(Terminal())
    assert (view.width, view.colour, view.interactive) == (132, True, True)


@pytest.mark.parametrize(
    ("name", "value", "colour"),
    [("NO_COLOR", "1", False), ("TERM", "dumb", False), ("FORCE_COLOR", "1", True)],
)
def test_the_environment_decides_on_colour(monkeypatch, name, value, colour):
    monkeypatch.setenv(name, value)
    assert screen(Terminal()).colour is colour


def test_a_width_that_was_asked_for_is_kept_within_reason():
    assert [screen(io.StringIO(), width).width for width in (1, 100, 5000)] == [60, 100, 200]


def test_an_output_that_takes_ascii_only_is_known():
    assert not screen(io.TextIOWrapper(io.BytesIO(), "latin-1")).unicode
