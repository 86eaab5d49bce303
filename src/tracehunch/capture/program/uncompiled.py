"""`torch.compile` inside a program: its regions are recorded as the eager code that they are made of."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tracehunch.capture.program.replacing import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.capture.program.tape import Tape

_TOLD = "torch.compile is passed over: its regions are recorded as eager code, which runs more kernels"
_REMEDY = "--compile predicts what the compiled program runs"


@contextmanager
def uncompiled(torch: Any, tape: Tape) -> Iterator[None]:
    """Compile nothing, and run what is compiled already as it was written."""

    def compile(model: Any = None, **_: Any) -> Any:  # noqa: A001  # torch's name
        tape.obstacle(_TOLD, _REMEDY)
        return _same if model is None else model

    def compile_module(module: Any, *_: Any, **__: Any) -> None:  # noqa: ARG001  # as Module.compile takes them
        tape.obstacle(_TOLD, _REMEDY)

    stance = torch.compiler.set_stance("force_eager") if hasattr(torch.compiler, "set_stance") else None
    with replaced(torch, "compile", compile), patch.object(torch.nn.Module, "compile", compile_module):
        if stance is None:
            yield
        else:
            with stance:
                yield


def _same(model: Callable[..., Any]) -> Callable[..., Any]:
    return model
