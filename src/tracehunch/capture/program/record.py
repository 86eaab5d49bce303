"""Record the calls of one run of a program without a GPU."""

from __future__ import annotations

import inspect
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.program.attention import attention
from tracehunch.capture.program.borrowed import borrowed
from tracehunch.capture.program.bounds import bounds
from tracehunch.capture.program.causal_bias import causal_biases
from tracehunch.capture.program.ctc import ctc_loss
from tracehunch.capture.program.dispatch import REMEDY, Dispatch
from tracehunch.capture.program.elsewhere import elsewhere
from tracehunch.capture.program.finite import finite
from tracehunch.capture.program.jagged import jagged
from tracehunch.capture.program.known import Known
from tracehunch.capture.program.modules import called, named, optimizers
from tracehunch.capture.program.pinning import pinning
from tracehunch.capture.program.place import Modules
from tracehunch.capture.program.placement import moved, on_gpu
from tracehunch.capture.program.printing import printing
from tracehunch.capture.program.reading import reading
from tracehunch.capture.program.settings import kept, settings
from tracehunch.capture.program.single import single
from tracehunch.capture.program.smoothed import cross_entropy
from tracehunch.capture.program.subscripts import subscripts
from tracehunch.capture.program.tape import Stopped, Tape
from tracehunch.capture.program.target import Call, arguments_of, forgotten, last_line, load, own_line, read
from tracehunch.capture.program.uncompiled import uncompiled
from tracehunch.capture.program.usual import unpadded, usual_outcomes
from tracehunch.capture.program.weights import weights
from tracehunch.capture.program.world import as_real, world
from tracehunch.capture.torch_env import import_torch
from tracehunch.errors import CaptureError, TracehunchError
from tracehunch.predict.environment import Environment, environment
from tracehunch.predict.program.calls import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_UNREAD: Final = "its data is not allocated yet"  # what C++ says that reads a tensor without data
_VALUES: Final = "an operation reads values of a tensor that are not recorded"
_NOTHING: Final = "the callable calls nothing of PyTorch's"


def record_program(
    target: str,
    *,
    search: Path | None = None,
    env: Environment | None = None,
    values: bool = False,
    warmup: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Program:
    """Build and run what `target` names ("module:function") once, as if on a GPU, and record its calls.

    The function takes no arguments and returns (callable, args, kwargs), (callable, args) or a callable; its
    module is looked for in `search` (the current folder) first. `env` is the GPU that is pretended (an H200).
    With `values` all tensors have values on the CPU, so that control flow follows them. `warmup` runs before
    the one that is recorded create what only a first run does, as an optimizer's state.

    Raises:
        CaptureError: the target cannot be found, imported or built, or its run fails.

    """

    def build() -> Call:
        return read(load(target, search or Path.cwd())(), target)

    return _record(build, target, env, values=values, warmup=warmup, tell=progress or (lambda _: None))


def record_call(
    run: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    env: Environment | None = None,
    values: bool = False,
    warmup: int = 0,
) -> Program:
    """Run a callable once, as if on a GPU, and record its calls; see `record_program`.

    Its tensors count as on the GPU. Modules and optimizers that it can reach (itself, what it closes over,
    its arguments) get stand-ins without data while it runs and are as before afterwards; other tensors of its
    own are taken as on the GPU where they are met.
    """
    name = getattr(run, "__qualname__", type(run).__name__)
    call = Call(run, tuple(args), dict(kwargs or {}))
    return _record(lambda: call, name, env, values=values, warmup=warmup, lent=True)


def _record(
    build: Callable[[], Call],
    name: str,
    env: Environment | None,
    *,
    values: bool,
    warmup: int,
    tell: Callable[[str], None] = lambda _: None,
    lent: bool = False,
) -> Program:
    torch = import_torch()
    env = env or environment("h200", torch.__version__.split("+")[0])
    tape = Tape(torch, Modules({}))
    known = Known(torch, everything=values)
    dispatch = Dispatch(torch, tape, known)
    roots: list[Any] = []
    with ExitStack() as stack:
        stack.enter_context(forgotten())
        if not lent:
            stack.enter_context(arguments_of(name))
        dispatch.instead["scaled_dot_product_attention"] = attention(torch, tape, known, env)
        dispatch.instead["linear"] = dispatch.unwatched.linear
        dispatch.instead["cross_entropy_loss"] = cross_entropy(torch, tape, known)
        dispatch.instead |= dict.fromkeys(("ctc_loss.Tensor", "ctc_loss.IntList"), ctc_loss(torch, known))
        fake = stack.enter_context(world(torch, env, dispatch, dispatch.instead))
        stack.enter_context(elsewhere(torch, tape, fake))
        stack.enter_context(causal_biases(torch, tape, env))
        stack.enter_context(kept(torch))  # where a GPU is there: a default device may be it
        stack.enter_context(reading(torch, dispatch))
        stack.enter_context(printing(torch, dispatch))
        stack.enter_context(pinning(torch, dispatch.pinned))
        stack.enter_context(subscripts(torch))
        stack.enter_context(uncompiled(torch, tape))
        stack.enter_context(jagged(torch, tape, known))
        stack.enter_context(weights(torch, known))
        stack.enter_context(single(torch, tape))
        if not values:
            stack.enter_context(usual_outcomes(torch))
            stack.enter_context(finite(torch, known))
        dispatch.accumulation.calibrate()
        dispatch.reached_gpu = False
        try:
            tell("building")
            call = trying(tape, name, "be built", build)
            if lent:
                dispatch.everywhere = True
                held = [*named(torch, call)[1], *optimizers(torch, call)]
                call = stack.enter_context(borrowed(torch, known, call, held))
            elif not dispatch.reached_gpu:
                dispatch.everywhere = True
                stack.enter_context(on_gpu(torch))
                call = trying(tape, name, "be built", build)
                call = moved(torch, call, named(torch, call)[1])
            names, roots = named(torch, call)
            tell("running")
            trying(tape, name, "run", lambda: _run(torch, tape, call, names, warmup, values=values))
        except Stopped:
            pass
        tell_of_nothing(tape)
        return program_of(torch, tape, name, roots)


def trying(tape: Tape, name: str, what: str, work: Callable[[], Any]) -> Any:
    """Do what the user's code has a part in; its errors are told in one line."""
    try:
        return work()
    except TracehunchError:
        raise
    except Exception as error:
        if _UNREAD in str(error) and not tape.stopped:
            raise tape.stop(_VALUES, REMEDY, own_line(error)) from error
        if tape.stopped:  # C code turns what a number raises that is not known into an error of its own
            raise Stopped from error
        raise CaptureError(f"{name} cannot {what}", last_line(error), advice(str(error))) from error
    except SystemExit as error:
        raise CaptureError(
            f"{name} cannot {what}", last_line(error), "return before the program ends itself"
        ) from error


def advice(said: str) -> str:
    """Return what to do about an error of the program's own."""
    if "on the same device" in said or "different devices" in said:
        return "a GPU would refuse this too: move all tensors of the call to one device"
    return "run it by itself to see whether it is the program's own error"


def tell_of_nothing(tape: Tape) -> None:
    """Say so where a run has called nothing."""
    if not (tape.calls or tape.obstacles):
        tape.obstacle(_NOTHING, "return the callable that runs the model, not one that has run it")


def _run(torch: Any, tape: Tape, call: Call, names: dict[int, str], warmup: int, *, values: bool) -> None:
    tape.modules = Modules(names)
    tape.built()
    with called(torch, tape), as_real(), nullcontext() if values else unpadded(), bounds():
        for _ in range(warmup + 1):
            tape.begin()  # a run that stops is what is known, be it a warm-up
            try:
                made = call.run(*call.args, **call.kwargs)
            finally:
                tape.on = False
            ran(made)


def ran(made: Any) -> None:
    """Raise where a call has returned what is yet to run."""
    if inspect.iscoroutine(made) or inspect.isgenerator(made):
        kind = "coroutine" if inspect.iscoroutine(made) else "generator"
        made.close()
        raise CaptureError(
            f"the callable returned a {kind}",
            "nothing of it has run",
            "return a function that runs it to its end",
        )


def program_of(torch: Any, tape: Tape, name: str, roots: list[Any]) -> Program:
    """Return what is on the tape as a program; `roots` are its outermost modules."""
    parameters = {id(one): one for root in roots for one in root.parameters()}.values()
    return Program(
        name=name,
        calls=tuple(tape.calls),
        obstacles=tuple(tape.obstacles),
        torch=str(torch.__version__),
        parameters=sum(one.numel() for one in parameters),
        parameter_bytes=sum(one.numel() * one.element_size() for one in parameters),
        settings=settings(torch),
    )
