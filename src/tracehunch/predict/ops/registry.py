"""Names of operations, and the functions that know what they launch."""

from collections.abc import Callable
from typing import Final

from tracehunch.predict.ops.steps import Call, Steps

Handler = Callable[[Call], Steps]

_HANDLERS: Final[dict[str, Handler]] = {}
_PREFIXES: Final = (
    "torch.nn.functional.",
    "torch.special.",
    "torch.linalg.",
    "torch.Tensor.",
    "torch.",
    "aten::",
)


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a function for operations of these names."""

    def register(handler: Handler) -> Handler:
        for name in names:
            assert name not in _HANDLERS, name
            _HANDLERS[name] = handler
        return handler

    return register


def plain_name(name: str) -> str:
    """Return an op's name without namespace and overload: "aten::add.Tensor" is "add"."""
    plain = name.strip()
    for prefix in _PREFIXES:
        plain = plain.removeprefix(prefix)
    return plain.split(".", 1)[0]


def handler_of(name: str) -> Handler | None:
    """Return the function for a plain name."""
    return _HANDLERS.get(name)


def known_ops() -> tuple[str, ...]:
    """Return the plain names of all operations that are known, sorted."""
    return tuple(sorted(_HANDLERS))
