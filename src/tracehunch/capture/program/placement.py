"""Where a program's tensors are: on the GPU where it says so, and all of them where it never says.

A program that puts anything on the GPU while it is built is taken at its word: what it leaves on the CPU
stays there, and each move is a copy. One that names no device is treated as if written for a GPU: it is built
and run under `torch.device("cuda")`, and tensors that are on the CPU nevertheless (from numpy, from a file,
by `device="cpu"`) are moved before the run, or taken as moved where they are met.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tracehunch.capture.program.causal_bias import is_causal_bias
from tracehunch.capture.program.target import Call

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def on_gpu(torch: Any) -> Iterator[None]:
    """Make tensors for which no device is named on the GPU, but for the counters that optimizers keep."""
    from torch.utils._device import DeviceContext  # noqa: PLC0415  # an optional dependency

    class Placed(DeviceContext):  # type: ignore[misc]  # torch is not typed here
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if _of_an_optimizer(sys._getframe(1).f_code.co_filename):  # noqa: SLF001  # who asks
                return func(*args, **(kwargs or {}))
            return super().__torch_function__(func, types, args, kwargs)

    with Placed(torch.device("cuda", 0)), _unseen(torch):
        yield


@contextmanager
def _unseen(torch: Any) -> Iterator[None]:
    """Hide the mode from modules that leave their fast path where one is on, as transformer layers do."""
    overrides = torch.overrides
    asked = overrides.has_torch_function

    def without_ours(arguments: Any) -> bool:
        if not torch._C._len_torch_function_stack():  # noqa: SLF001  # a mode is off while it is asked
            return bool(asked(arguments))
        with overrides._pop_mode_temporarily():  # noqa: SLF001  # torch has no public way
            return bool(asked(arguments))

    overrides.has_torch_function = without_ours
    try:
        yield
    finally:
        overrides.has_torch_function = asked


def moved(torch: Any, call: Call, roots: list[Any]) -> Call:
    """Return the call with its tensors on the GPU, and those of its modules moved there."""
    for root in roots:
        if any(one.device.type == "cpu" for one in (*root.parameters(), *root.buffers())):
            root.cuda()
    return Call(call.run, _moved(torch, tuple(call.args)), _moved(torch, dict(call.kwargs)))


def _moved(torch: Any, value: Any) -> Any:
    if torch.is_tensor(value) and not is_causal_bias(value):
        return value.cuda() if value.device.type == "cpu" else value
    if type(value) in (list, tuple):
        return type(value)(_moved(torch, one) for one in value)
    if type(value) is dict:
        return {name: _moved(torch, one) for name, one in value.items()}
    return value


def _of_an_optimizer(file: str) -> bool:
    return "torch/optim/" in file.replace("\\", "/")
