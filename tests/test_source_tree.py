"""The rules about the source tree that no tool checks: module sizes, docstrings, prints."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "tracehunch"
MODULES = sorted(SRC.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_module_is_small_and_documented(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "each module says in its docstring what it is for"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_no_print_and_no_bare_except_outside_the_command_line(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            assert path.relative_to(SRC).parts[0] == "cli", f"line {node.lineno}"
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}"


def test_half_of_the_modules_are_below_the_median_aimed_at() -> None:
    lengths = sorted(len(p.read_text().splitlines()) for p in MODULES)
    assert lengths[len(lengths) // 2] <= 150
