"""`torch.compile` and TorchScript inside a program: recorded as the eager code that they are made of."""

from __future__ import annotations

import inspect
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tracehunch.capture.program.place import INSTALLED
from tracehunch.capture.program.replacing import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.capture.program.tape import Tape

_TOLD = "torch.compile is passed over: its regions are recorded as eager code, which runs more kernels"
_REMEDY = "--compile predicts what the compiled program runs"
_SCRIPTED = "TorchScript is passed over: it is recorded as eager code, of which its fuser may join kernels"
_SCRIPTS: Final = ("script", "trace", "freeze", "optimize_for_inference")


@contextmanager
def uncompiled(torch: Any, tape: Tape) -> Iterator[None]:
    """Compile nothing, and run what is compiled already as it was written."""

    def compile(model: Any = None, **_: Any) -> Any:  # noqa: A001  # torch's name
        tape.obstacle(_TOLD, _REMEDY)
        return _same if model is None else model

    def compile_module(module: Any, *_: Any, **__: Any) -> None:  # noqa: ARG001  # as Module.compile takes them
        tape.obstacle(_TOLD, _REMEDY)

    stance = torch.compiler.set_stance("force_eager") if hasattr(torch.compiler, "set_stance") else None
    with ExitStack() as stack:
        stack.enter_context(replaced(torch, "compile", compile))
        stack.enter_context(patch.object(torch.nn.Module, "compile", compile_module))
        for name in _SCRIPTS:
            stack.enter_context(replaced(torch.jit, name, _unscripted(tape, getattr(torch.jit, name))))
        if stance is not None:
            stack.enter_context(stance)
        yield


def _unscripted(tape: Tape, make: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is to be scripted as it is; libraries get what they ask for: it outlives the recording."""

    def unscripted(*args: Any, **kwargs: Any) -> Any:
        asker = sys._getframe(2).f_code.co_filename  # noqa: SLF001  # nothing public tells; 1 is the replacement
        model = next(iter((*args, *kwargs.values())), None)
        if asker.startswith(INSTALLED) or inspect.isclass(model):
            return make(*args, **kwargs)
        tape.obstacle(_SCRIPTED)
        return model

    return unscripted


def _same(model: Callable[..., Any]) -> Callable[..., Any]:
    return model
