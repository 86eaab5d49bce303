"""Watch the steps of all optimizers, from outside of the annotation that PyTorch puts around each.

A global post hook runs inside of ``Optimizer.step#...``: a recording that starts or ends there cuts the
annotation in two. So the function is wrapped that puts it there, ``Optimizer.profile_hook_step``.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Optimizers:
    """Calls ``tell(id of the optimizer)`` after each outermost step.

    Optimizer classes met while watching keep a wrapper that does nothing more: taking it off again could make
    torch.compile compile a training step anew.
    """

    def __init__(self, torch: Any, tell: Callable[[int], None]) -> None:
        self._tell: Callable[[int], None] | None = tell
        self._compiling = torch.compiler.is_compiling
        self._inside = threading.local()
        self._optimizer = torch.optim.Optimizer
        self._plain = self._optimizer.__dict__["profile_hook_step"]
        self._optimizer.profile_hook_step = staticmethod(self._hooked)

    def keep_from(self, compiler: Any) -> None:
        """Keep torch.compile, once loaded, from compiling what is ours between two of its graphs."""
        compiler.eval_frame.skip_code(Optimizers._call.__code__)
        compiler.eval_frame.skip_code(self._hooked(_nothing).__code__)  # which all classes share
        self._tell = compiler.disable(self._tell)

    def remove(self) -> None:
        """Tell no more, and leave optimizer classes to come alone."""
        self._tell = None
        self._optimizer.profile_hook_step = self._plain

    def _hooked(self, step: Any) -> Any:
        annotated = self._plain.__func__(step)
        compiling = self._compiling

        @functools.wraps(annotated)
        def outside(*args: Any, **kwargs: Any) -> Any:
            if compiling():  # asked first: compiled, nothing else is read
                return annotated(*args, **kwargs)
            return self._call(annotated, args, kwargs)

        return outside

    def _call(self, annotated: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._tell is None or getattr(self._inside, "a_step", False):
            return annotated(*args, **kwargs)
        self._inside.a_step = True
        try:
            result = annotated(*args, **kwargs)
        finally:
            self._inside.a_step = False
        if self._tell is not None:
            self._tell(id(args[0]))
        return result


def _nothing() -> None:
    """Stand for a step to wrap."""
