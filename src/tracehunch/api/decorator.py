"""``@tracehunch.profiled``: record the first calls of a function, then get out of its way."""

from __future__ import annotations

import functools
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast, overload

from tracehunch.api.captured import Captured, label_of
from tracehunch.api.profiling import StrPath, path_of
from tracehunch.capture.calls import CallRecorder
from tracehunch.capture.recorder import Recording
from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tracehunch.guess.written import Written

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class ProfiledCalls(Captured):
    """What a profiled function has as ``.profile``: the trace of its first calls, and what it shows."""

    def __init__(self, label: str, guess: Written | None, recorder: CallRecorder) -> None:
        super().__init__(guess, label_of(label))
        self._recorder = recorder

    @property
    def trace_path(self) -> Path | None:
        """The trace that was written; None while there is none."""
        return self._recorder.trace_path

    @property
    def reason(self) -> str:
        """Why there is no trace, or fewer calls in it than were asked for; "" if all are there."""
        return self._recorder.reason

    @property
    def detached(self) -> bool:
        """Whether all calls were seen, and the function runs as if it were not profiled."""
        return self._recorder.detached

    def stop(self) -> None:
        """Stop before all calls were seen, and write what there is."""
        self._recorder.stop()


class ProfiledFunction(Protocol[P, R_co]):
    """A function, or method, that is profiled in its first calls."""

    profile: ProfiledCalls

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function."""

    @overload
    def __get__(self, instance: None, owner: type) -> ProfiledFunction[P, R_co]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., R_co]: ...


@overload
def profiled(label: Callable[P, R], /) -> ProfiledFunction[P, R]: ...
@overload
def profiled(
    label: str = "",
    guess: Written | None = None,
    *,
    calls: int = 1,
    skip: int | None = None,
    path: StrPath | None = None,
    shapes: bool = True,
    stacks: bool = False,
    memory: bool = False,
    cuda: bool | None = None,
) -> Callable[[Callable[P, R]], ProfiledFunction[P, R]]: ...
def profiled(
    label: Any = "",
    guess: Written | None = None,
    *,
    calls: int = 1,
    skip: int | None = None,
    path: StrPath | None = None,
    shapes: bool = True,
    stacks: bool = False,
    memory: bool = False,
    cuda: bool | None = None,
) -> Any:
    """Profile the first calls of a function; later ones cost a look at one flag.

    ::

        @tracehunch.profiled(guess={"kernels": 5})
        def attention(q, k, v): ...

        attention(q, k, v); attention(q, k, v)
        attention.profile.verdict.print()

    The first call, in which happens what happens only once, is recorded by itself; the next ``calls`` calls
    take its place. A call inside another, or in another thread beside it, is not recorded. A function that
    cannot be profiled (another profiler runs) runs unchanged, and ``.profile.reason`` says why.

    Args:
        label: the scope that facts and claims are about; by default the function's qualified name.
        guess: as of ``tracehunch.profile``; sealed where the function is decorated.
        calls: how many calls to record. Between them the profiler goes on: what runs there is in the trace,
            outside the label, so record one call of a function that is called seldom.
        skip: how many calls pass instead of the first.
        path: of the trace, as of ``tracehunch.profile``.
        shapes: record the shapes of tensors.
        stacks: record Python stacks; slow.
        memory: record allocations.
        cuda: whether to record the GPU; by default where PyTorch finds one.

    Raises:
        GuessError: the guess cannot be understood.
        CaptureError: what is decorated is no plain function (a coroutine, a generator), or the numbers of
        calls make no sense.

    """
    named = label if isinstance(label, str) else ""
    options = Recording(shapes=shapes, stacks=stacks, memory=memory, cuda=cuda, label=named)

    def decorate(function: Callable[..., Any]) -> Any:
        return _decorated(function, options=options, guess=guess, calls=calls, skip=skip, path=path)

    return decorate if isinstance(label, str) else decorate(label)


def _decorated(
    function: Callable[P, R],
    *,
    options: Recording,
    guess: Written | None,
    calls: int,
    skip: int | None,
    path: StrPath | None,
) -> ProfiledFunction[P, R]:
    _refuse_unusual(function)
    label = options.label or _name(function)
    recorder = CallRecorder(lambda: path_of(label, path), calls, skip, replace(options, label=label))
    profile = ProfiledCalls(label, guess, recorder)

    @functools.wraps(function)
    def profiled_function(*args: P.args, **kwargs: P.kwargs) -> R:
        if recorder.detached:
            return function(*args, **kwargs)
        with recorder.call():
            return function(*args, **kwargs)

    made = cast("ProfiledFunction[P, R]", profiled_function)
    made.profile = profile
    return made


def _name(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__)).rpartition("<locals>.")[2]


def _refuse_unusual(function: object) -> None:
    if not callable(function):
        what = f"cannot profile a {type(function).__name__}"
        raise CaptureError(what, "", "write @tracehunch.profiled next to the function, below what wraps it")
    kinds: dict[str, Callable[[object], bool]] = {
        "a coroutine function": inspect.iscoroutinefunction,
        "a generator function": inspect.isgeneratorfunction,
        "an asynchronous generator function": inspect.isasyncgenfunction,
        "a class": inspect.isclass,
    }
    for kind, is_that in kinds.items():
        if is_that(function):
            what = f"cannot profile {_name(function)}"
            raise CaptureError(what, f"it is {kind}", "write with tracehunch.profile(...) in it")
