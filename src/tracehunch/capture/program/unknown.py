"""Numbers that are not known: what `.item()` returns for a tensor without values.

They may be printed, summed up and passed on. Where one decides (a comparison, an index, `if`), the recording
stops, as the program could go either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.program.checks import passing

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT: Final = "unknown"
_MIDDLE: Final = 1.0  # where C code takes the number as it is: neither zero nor infinite

_NUMBERS: Final = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod",
    "rmod", "pow", "rpow", "neg", "pos", "abs", "round", "and", "rand", "or", "ror", "xor", "rxor", "invert",
)  # fmt: skip
_DECISIONS: Final = (
    "bool",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "int",
    "index",
    "hash",
    "trunc",
    "floor",
    "ceil",
)
_TRUTHS: Final = tuple(f"__{name}__" for name in ("bool", "eq", "ne", "lt", "le", "gt", "ge"))


def unknown_number(stop: Callable[[str], BaseException], *, floating: bool) -> Any:
    """Return a number that raises what `stop(reason)` returns where its value would decide something."""
    return _FLOAT(stop) if floating else _WHOLE(stop)


def is_unknown(value: Any) -> bool:
    """Whether a value is such a number."""
    return isinstance(value, (_FLOAT, _WHOLE))


def _decide(name: str) -> Any:
    def decide(self: Any, *_: Any) -> Any:
        found = passing() if name in _TRUTHS else None
        if found is not None:
            return found
        raise self._stop("the program decides by a number that only a run with values knows")

    decide.__name__ = name
    return decide


def _go_on(name: str) -> Any:
    def go_on(self: Any, *_: Any) -> Any:
        return type(self)(self._stop)

    go_on.__name__ = name
    return go_on


def _class(base: type, make: Callable[..., Any]) -> type:
    methods: dict[str, Any] = {f"__{name}__": _go_on(f"__{name}__") for name in _NUMBERS}
    methods |= {f"__{name}__": _decide(f"__{name}__") for name in _DECISIONS}
    methods |= {
        "__new__": make,
        "__repr__": lambda _: TEXT,
        "__str__": lambda _: TEXT,
        "__format__": lambda _, __: TEXT,
        "__float__": lambda _: _MIDDLE,
        "item": lambda self: self,
        "__doc__": "A number that is not known.",
    }
    return type("UnknownNumber", (base,), methods)


def _make_float(kind: Any, stop: Any) -> Any:
    made = float.__new__(kind, _MIDDLE)
    made._stop = stop  # noqa: SLF001  # torch has no public way
    return made


def _make_whole(kind: Any, stop: Any) -> Any:
    made = object.__new__(kind)
    made._stop = stop
    return made


_FLOAT: Final = _class(float, _make_float)
_WHOLE: Final = _class(object, _make_whole)  # no int: C code would take its value without asking
