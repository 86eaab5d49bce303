"""Say when a module has been imported, by whoever does it: torch is hooked then, and not loaded before.

A program may set CUDA_VISIBLE_DEVICES and the like before it imports torch, may never import it, or may fail
to.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def when_imported(name: str, tell: Callable[[ModuleType], None]) -> None:
    """Call ``tell`` with the module once it is complete: now, or right after its first import."""
    if name in sys.modules:
        tell(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Watch(name, tell))


class _Watch:
    """A finder that finds nothing itself; it lends one module's loader an ear."""

    def __init__(self, name: str, tell: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._tell = tell

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002  # importing's signature
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            self._listen(spec.loader)
        return spec

    def _listen(self, loader: Any) -> None:
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            loader.exec_module = load  # and not deleted: there may be another who listens
            load(module)
            self._tell(module)

        loader.exec_module = exec_module
