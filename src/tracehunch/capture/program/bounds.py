"""`max(1.0, norm.item())`: the larger of a number and an unknown one is unknown, and decides nothing."""

from __future__ import annotations

import builtins
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tracehunch.capture.program.unknown import is_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def bounds() -> Iterator[None]:
    """Let Python's `max` and `min` take numbers that are not known."""
    with (
        patch.object(builtins, "max", _bound(builtins.max)),
        patch.object(builtins, "min", _bound(builtins.min)),
    ):
        yield


def _bound(chosen: Callable[..., Any]) -> Callable[..., Any]:
    def bound(*values: Any, **kwargs: Any) -> Any:
        if len(values) > 1 and not kwargs:
            for one in values:
                if is_unknown(one):
                    return one
        return chosen(*values, **kwargs)

    return bound
