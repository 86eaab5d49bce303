"""What a user may name, what a function may return, and what is said to anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tracehunch.capture.program.target import load, read
from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
class Maker:
    def build():
        return print

def build():
    return print, (1,)

value = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a_module_of_ours.py").write_text(MODULE)
    (tmp_path / "breaks_on_import.py").write_text("import json\n\nraise ValueError('no weights here')\n")
    (tmp_path / "relative.py").write_text("from .other import build\n")
    (tmp_path / "cut_off.py").write_text("import json\ndef build(:\n")
    (tmp_path / "long_message.py").write_text("raise ValueError('the matter\\nand much more')\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "in_a_folder.py").write_text(MODULE)
    return tmp_path


@pytest.mark.parametrize(
    "target", ["a_module_of_ours:build", "a_module_of_ours:Maker.build", "sub/in_a_folder.py:build"]
)
def test_a_function_is_found(folder: Path, target: str) -> None:
    assert read(load(target, folder)(), target).run is print


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("a_module_of_ours", "names no function"),
        ("a_module_of_ours:", "names no function"),
        ("a_module_of_ours:biuld", "has no 'biuld'; did you mean build?"),
        ("a_module_of_ours:Maker.biuld", "a_module_of_ours.Maker has no 'biuld'; did you mean build?"),
        ("a_module_of_ours:value", "is a int"),
        ("a_module_of_uors:build", "did you mean a_module_of_ours?"),
        ("nothing_like_it:build", "run it in the folder that holds nothing_like_it.py"),
        ("sub/absent.py:build", "no file"),
        ("relative.py:build", r"relative import .* name it in its package: relative:function"),
        ("cut_off:build", r"SyntaxError: .* \(cut_off.py:2\)"),
        ("long_message:build", r"ValueError: the matter \(long_message.py:1\)"),
        ("breaks_on_import:build", r"ValueError: no weights here \(breaks_on_import.py:3\)"),
    ],
)
def test_anything_else_is_told_in_a_line(folder: Path, target: str, said: str) -> None:
    with pytest.raises(CaptureError, match=said) as caught:
        load(target, folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "made", [None, 3, (), (3,), (print, 3), (print, {"a": 1}), (print, (), []), (print, (), {}, 1)]
)
def test_a_wrong_return_is_refused(made: object) -> None:
    with pytest.raises(CaptureError, match="m:f returned"):
        read(made, "m:f")


def test_args_and_kwargs_are_taken() -> None:
    call = read((print, [1], {"sep": ""}), "m:f")
    assert (call.run, call.args, call.kwargs) == (print, (1,), {"sep": ""})
