"""Tensors without data where the recording does not see them: other threads, tools with their own fake mode.

There C++ hears that they are on a GPU, asks for it, and ends the whole process. So the recording stops first.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tracehunch.capture.program.tape import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.capture.program.tape import Tape

_THREAD: Final = (
    "a thread of the program's own uses its tensors: only the thread that makes the call is recorded"
)
_TRACED: Final = "the program is traced (by torch.export or the like) while it is built or run"


@contextmanager
def elsewhere(torch: Any, tape: Tape, fake: Any) -> Iterator[None]:
    """Stop the recording where tensors are used in another thread, or under another mode than `fake`."""
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: PLC0415  # an optional dependency

    with ExitStack() as stack:
        stack.enter_context(
            patch.object(FakeTensor, "__torch_dispatch__", _one_thread(torch, tape, FakeTensor))
        )
        stack.enter_context(patch.object(FakeTensorMode, "__enter__", _one_mode(tape, fake, FakeTensorMode)))
        stack.enter_context(patch.object(threading, "excepthook", _quiet(threading.excepthook)))
        yield


def _one_thread(torch: Any, tape: Tape, fake_tensor: Any) -> Any:
    asked, meta, ours = torch.ops.prim.device.default, torch.device("meta"), threading.get_ident()
    original = fake_tensor.__torch_dispatch__.__func__

    def dispatch(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if threading.get_ident() == ours:
            return original(cls, func, types, args, kwargs or {})
        if func is asked:
            device = args[0].fake_device
            return meta if device.type == "cuda" else device
        raise tape.stop(_THREAD, "guess a callable that does the work itself, without the thread")

    return classmethod(dispatch)


def _one_mode(tape: Tape, fake: Any, fake_mode: Any) -> Callable[[Any], Any]:
    original = fake_mode.__enter__

    def enter(self: Any) -> Any:
        if self is not fake:
            raise tape.stop(
                _TRACED, "hand over the model itself; --compile predicts what torch.compile makes of it"
            )
        return original(self)

    return enter


def _quiet(original: Callable[[Any], object]) -> Callable[[Any], None]:
    """Print nothing of a thread that the recording ended."""

    def hook(args: Any) -> None:
        if not issubclass(args.exc_type, Stopped):
            original(args)

    return hook
