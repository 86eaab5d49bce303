"""Notice a profiler that the program starts itself, before it starts: there is room for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture import others

if TYPE_CHECKING:
    from collections.abc import Callable

_WAYS_IN: Final = ("_prepare_profiler", "_enable_profiler")
"""What every profiler of PyTorch calls, in ``torch.autograd.profiler``."""


class Rivals:
    """Calls ``tell()`` before any profiler is prepared or enabled, ours as well."""

    def __init__(self, torch: Any, tell: Callable[[], None]) -> None:
        self._place = torch.autograd.profiler
        self._plain = {name: getattr(self._place, name) for name in _WAYS_IN if hasattr(self._place, name)}
        for name, plain in self._plain.items():
            setattr(self._place, name, _announced(plain, tell))
        self._tell = tell
        others.gives_way.append(tell)  # our own recorders ask before they come

    def remove(self) -> None:
        """Put back what was there."""
        others.gives_way.remove(self._tell)
        for name, plain in self._plain.items():
            setattr(self._place, name, plain)


def _announced(plain: Any, tell: Callable[[], None]) -> Any:
    def announced(*args: Any, **kwargs: Any) -> Any:
        tell()
        return plain(*args, **kwargs)

    return announced
