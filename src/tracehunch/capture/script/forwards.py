"""Watch the outermost calls of modules, and leave no trace of it.

The code of ``Module.__call__`` is exchanged while forwards are of interest, and put back. PyTorch's global
forward hooks are no use here: torch.compile warns of them, compiles other code where there are any, and
compiles again when they go; the same for another function in the place of ``__call__``. The function stays,
so it sees nothing; what it inlines of the exchanged code is the call of the code that was there.
"""

from __future__ import annotations

import functools
import threading
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

STATE: Final = "_tracehunch"
"""Among the globals of ``Module.__call__``, for its exchanged code; it stays there for compiled code."""

torch: Any = None  # for the names in what follows; it runs with other globals
_tracehunch: Any = None


def _exchanged(self: Any, *args: Any, **kwargs: Any) -> Any:
    if torch.compiler.is_compiling() or _tracehunch.inside:  # in this order: compiled, nothing else is read
        return _tracehunch_plain(self, *args, **kwargs)
    return _tracehunch.outermost(self, args, kwargs)


_tracehunch_plain: Any = None


class _State(threading.local):
    """Whether this thread is inside of a forward, and what to do with an outermost one."""

    inside = False

    def __init__(self, outermost: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        self.outermost = outermost


class Forwards:
    """Calls ``tell(id of the module)`` after each outermost forward of a module that has parameters.

    So does a CUDA graph that is replayed, which stands for the forwards that were captured. A loss or an
    activation of its own is no step; nor is a forward that is computed again in a backward pass.
    """

    def __init__(self, torch: Any, tell: Callable[[int], None]) -> None:
        self._function = torch.nn.Module.__call__
        self._code: CodeType = self._function.__code__
        self._tell = tell
        self._in_backward = getattr(torch._C, "_current_graph_task_id", lambda: -1)  # noqa: SLF001  # no public way
        self._state = _State(self._outermost)
        there = self._function.__globals__
        there[STATE] = self._state
        there[f"{STATE}_plain"] = self._plain = FunctionType(self._code, there)
        self._function.__code__ = _disguised(_exchanged.__code__, self._code)
        self._graph = torch.cuda.CUDAGraph
        self._replay = self._graph.replay
        self._graph.replay = self._replayed = _told(self._replay, self._has_replayed)

    def keep_from(self, compiler: Any) -> None:
        """Keep torch.compile, once loaded, from compiling what is ours between two of its graphs."""
        compiler.eval_frame.skip_code(Forwards._outermost.__code__)
        self._tell = compiler.disable(self._tell)

    def remove(self) -> None:
        """Put back what was there."""
        self._function.__code__ = self._code
        if self._graph.replay is self._replayed:
            self._graph.replay = self._replay

    def _has_replayed(self, graph: Any) -> None:
        if not self._state.inside and self._in_backward() == -1:
            self._tell(id(graph))

    def _outermost(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._state.inside = True
        try:
            result = self._plain(module, *args, **kwargs)
        finally:
            self._state.inside = False
        if self._in_backward() == -1 and next(module.parameters(), None) is not None:
            self._tell(id(module))
        return result


def _disguised(code: CodeType, original: CodeType) -> CodeType:
    """Give code the place of the original, by which torch.compile knows what not to compile."""
    return code.replace(
        co_filename=original.co_filename,
        co_name=original.co_name,
        co_qualname=original.co_qualname,
        co_firstlineno=original.co_firstlineno,
    )


def _told(replay: Any, tell: Callable[[Any], None]) -> Any:
    @functools.wraps(replay)
    def replayed(self: Any) -> None:
        replay(self)
        tell(self)

    return replayed
