"""Functions of other modules, replaced for a while."""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NOW: Final[dict[tuple[int, str], Callable[..., Any]]] = {}
"""What is done instead of a function now, by the identity of its owner and its name."""


@contextmanager
def replaced(owner: Any, name: str, instead: Callable[..., Any]) -> Iterator[None]:
    """Replace a function.

    What is imported meanwhile may keep the replacement: it has the original afterwards, and what is done
    instead whenever the function is replaced again.
    """
    original = getattr(owner, name)
    key = (id(owner), name)

    @wraps(original)
    def either(*args: Any, **kwargs: Any) -> Any:
        return _NOW.get(key, original)(*args, **kwargs)

    before = _NOW.get(key)
    _NOW[key] = instead
    try:
        with patch.object(owner, name, either):
            yield
    finally:
        if before is None:
            del _NOW[key]
        else:
            _NOW[key] = before
