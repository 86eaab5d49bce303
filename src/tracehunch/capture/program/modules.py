"""The modules of a program: those that its callable can reach, their names, and their calls."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.capture.program.tape import Tape
    from tracehunch.capture.program.target import Call


def optimizers(torch: Any, call: Call) -> list[Any]:
    """Return the optimizers that a call can reach."""
    return list(_reachable(call, torch.optim.Optimizer).values())


def named(torch: Any, call: Call) -> tuple[dict[int, str], list[Any]]:
    """Return the paths of all modules by identity, and the outermost modules.

    Paths start at the only outermost module, or with the name that the program has for each of several.
    """
    found = _reachable(call, torch.nn.Module)
    inner = {id(child) for module in found.values() for child in list(module.modules())[1:]}
    roots = {name: module for name, module in found.items() if id(module) not in inner}
    paths: dict[int, str] = {}
    for name, root in roots.items():
        for path, module in root.named_modules():
            front = "" if len(roots) == 1 else name
            paths.setdefault(id(module), ".".join(part for part in (front, path) if part))
    return paths, list(roots.values())


@contextmanager
def called(torch: Any, tape: Tape) -> Iterator[None]:
    """Tell the tape which module is being called."""
    original = torch.nn.Module.__call__

    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        tape.modules.enter(module)
        try:
            return original(module, *args, **kwargs)
        finally:
            tape.modules.leave()

    with patch.object(torch.nn.Module, "__call__", call):
        yield


def _reachable(call: Call, kind: type) -> dict[str, Any]:
    """Return objects of a kind by name: those that the callable, its closure or its arguments hold."""
    found: dict[str, Any] = {}
    seen: set[int] = set()

    def visit(name: str, value: Any, depth: int) -> None:
        if id(value) in seen or depth > 4:
            return
        seen.add(id(value))
        if isinstance(value, kind):
            found.setdefault(name or type(value).__name__, value)
        elif isinstance(value, (list, tuple)):
            for at, one in enumerate(value[:64]):
                visit(f"{name}.{at}", one, depth + 1)
        elif isinstance(value, dict):
            for key, one in list(value.items())[:64]:
                visit(str(key), one, depth + 1)
        else:
            for inner, one in _held(value):
                visit(inner, one, depth + 1)

    for name, value in (("", call.run), ("args", call.args), ("kwargs", dict(call.kwargs))):
        visit(name, value, 0)
    return found


def _held(value: Any) -> list[tuple[str, Any]]:
    """Return what a function, a bound method, a partial or an object of the user's holds, by name."""
    held: list[tuple[str, Any]] = []
    if hasattr(value, "__self__"):
        held.append((type(value.__self__).__name__, value.__self__))
    if hasattr(value, "__wrapped__"):
        held.append(("", value.__wrapped__))
    if hasattr(value, "func") and hasattr(value, "args"):
        held += [("", value.func), ("args", value.args)]
    code = getattr(value, "__code__", None)
    if code is not None:
        cells = getattr(value, "__closure__", None) or ()
        for name, cell in zip(code.co_freevars, cells, strict=True):
            try:
                held.append((name, cell.cell_contents))
            except ValueError:  # not assigned yet
                continue
        known = getattr(value, "__globals__", {})
        held += [(name, known[name]) for name in code.co_names if name in known]
        held += [("", one) for one in getattr(value, "__defaults__", None) or ()]
    elif not isinstance(value, type) and type(value).__module__ not in ("builtins", "torch"):
        held += list(getattr(value, "__dict__", {}).items())
    return held
