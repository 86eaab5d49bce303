"""Trial runs: where Inductor would measure on the GPU, the time of the operations is predicted instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.capture.program.tensors import Arguments, flat, plain, recorded
from tracehunch.predict.program.calls import OpCall
from tracehunch.predict.program.one_call import guess_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.predict.environment import Environment


def trial(torch: Any, env: Environment) -> Callable[[Callable[[], Any]], float]:
    """Return a function that tells how many milliseconds a function takes on the GPU."""

    def timed(run: Callable[[], Any], *_: Any, **__: Any) -> float:
        calls: list[OpCall] = []
        with _noting(torch, calls):
            run()
        times = [guess_call(call, env).activities.time for call in calls]
        return sum(time.mid_us for time in times if time is not None) / 1e3

    return timed


def _noting(torch: Any, calls: list[OpCall]) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415  # an optional dependency

    class Noting(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            made = func(*args, **(kwargs or {}))
            if func.namespace == "aten":
                calls.append(_call(torch, func, args, kwargs or {}, made))
            return made

    return Noting()


def _call(torch: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], made: Any) -> OpCall:
    given = Arguments(func, args, kwargs, torch.is_tensor)
    outputs = list(flat(made, torch.is_tensor))
    return OpCall(
        op=func._schema.name,  # noqa: SLF001  # torch has no public schema
        tensors=tuple(recorded(one) for one in given.tensors),
        devices=tuple(plain(one.device) for one in given.tensors),
        options=given.options,
        outputs=tuple(recorded(one) for one in outputs),
        output_devices=tuple(plain(one.device) for one in outputs),
    )
