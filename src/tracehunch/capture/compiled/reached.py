"""What a function can call that its module or the functions around it have made."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def reached(run: Any) -> list[Any]:
    """Return a callable and what it refers to: in closures, under decorators, in its module's namespace.

    Functions of other modules are returned, and not looked into unless they wrap one that is.
    """
    found: dict[int, Any] = {}
    waiting = [run]
    while waiting:
        one = waiting.pop()
        if id(one) in found:
            continue
        found[id(one)] = one
        waiting += _held(one)
        if isinstance(one, FunctionType):
            waiting += [other for other in _named(one) if _is_of(other, one)]
            found.update((id(other), other) for other in _named(one) if not _is_of(other, one))
    return list(found.values())


def _held(one: Any) -> Iterator[Any]:
    for name in ("__wrapped__", "__func__", "func"):
        inner = vars(one).get(name) if isinstance(one, FunctionType) else getattr(one, name, None)
        if callable(inner):
            yield inner
    for cell in getattr(one, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _named(function: FunctionType) -> Iterator[Any]:
    space = function.__globals__
    return (space[name] for name in function.__code__.co_names if name in space)


def _is_of(other: Any, function: FunctionType) -> bool:
    return isinstance(other, FunctionType) and other.__globals__ is function.__globals__
