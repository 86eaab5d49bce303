"""Record one run of a compiled program without a GPU."""

from __future__ import annotations

import logging
import re
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tracehunch.capture.compiled.attention import attention as traced_attention
from tracehunch.capture.compiled.attention import run_or_traced
from tracehunch.capture.compiled.events import Events
from tracehunch.capture.compiled.failures import failed, of_compiler
from tracehunch.capture.compiled.machine import machine
from tracehunch.capture.compiled.passes import passes, prepare
from tracehunch.capture.compiled.reached import reached
from tracehunch.capture.compiled.regions import compiling
from tracehunch.capture.compiled.trials import trial
from tracehunch.capture.program.attention import attention
from tracehunch.capture.program.borrowed import borrowed
from tracehunch.capture.program.causal_bias import causal_biases
from tracehunch.capture.program.data import default_device, of_data
from tracehunch.capture.program.dispatch import Dispatch
from tracehunch.capture.program.known import Known
from tracehunch.capture.program.modules import named, optimizers
from tracehunch.capture.program.pinning import pinning
from tracehunch.capture.program.place import Modules
from tracehunch.capture.program.placement import moved, on_gpu
from tracehunch.capture.program.reading import reading
from tracehunch.capture.program.record import program_of, ran, tell_of_nothing, trying
from tracehunch.capture.program.settings import kept
from tracehunch.capture.program.subscripts import subscripts
from tracehunch.capture.program.tape import Stopped, Tape
from tracehunch.capture.program.target import Call, arguments_of, forgotten, load, read
from tracehunch.capture.program.usual import usual_outcomes
from tracehunch.capture.program.world import world
from tracehunch.capture.torch_env import import_torch
from tracehunch.errors import CaptureError
from tracehunch.predict.environment import environment
from tracehunch.predict.program.compiled import CompiledProgram, Mode, Recompile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracehunch.capture.compiled.regions import Regions
    from tracehunch.predict.environment import Environment

_CALLS: Final = 3
"""Calls that are made: one compiles, one may compile again for what has changed, one is recorded."""

_FRAME: Final = "Torch-Compiled Region"
"""How a profile names the run of a frame that was compiled."""

_NO_GRADIENT: Final = re.compile(r"(\S+): an autograd kernel was not registered")

_TUNED: Final = (
    "max-autotune times kernels on the GPU: here products stay with cuBLAS, though templates may run "
    "and merge what follows them"
)


def record_compiled(
    target: str,
    *,
    search: Path | None = None,
    env: Environment | None = None,
    mode: Mode = "default",
    values: bool = False,
    progress: Callable[[str], None] | None = None,
) -> CompiledProgram:
    """Build what `target` names ("module:function"), compile and run it, as if on a GPU.

    What a program compiles itself stays as it is; one that compiles nothing is compiled as a whole. The
    Inductor that compiles is that of the PyTorch installed, whatever version `env` names. `mode` is that of
    `torch.compile`; the other arguments are those of `record_program`.

    Raises:
        CaptureError: the target cannot be found, imported or built, its run fails, or this PyTorch's compiler
            cannot be led without a GPU.

    """

    def build() -> Call:
        return read(load(target, search or Path.cwd())(), target)

    session = _Session(target, mode, progress or (lambda _: None))
    return _record(build, session, env, values=values)


def record_compiled_call(
    run: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    env: Environment | None = None,
    mode: Mode = "default",
    values: bool = False,
) -> CompiledProgram:
    """Compile and run a callable, as if on a GPU; see `record_call` for what happens to its tensors."""
    name = getattr(run, "__qualname__", type(run).__name__)
    call = Call(run, tuple(args), dict(kwargs or {}))
    return _record(lambda: call, _Session(name, mode, lambda _: None), env, values=values, lent=True)


@dataclass(slots=True)
class _Session:
    """What is compiled, how, and what is known of it so far."""

    name: str
    mode: Mode
    tell: Callable[[str], None]
    roots: list[Any] = field(default_factory=list)
    recompiles: list[Recompile] = field(default_factory=list)
    calls: int = 0
    steady: bool = False
    frames: int = 0


def _record(
    build: Callable[[], Call], session: _Session, env: Environment | None, *, values: bool, lent: bool = False
) -> CompiledProgram:
    torch = import_torch()
    env = env or environment("h200", torch.__version__.split("+")[0])
    tape = Tape(torch, Modules({}))
    known = Known(torch, everything=values)
    dispatch = Dispatch(torch, tape, known)
    with ExitStack() as stack:
        lost = stack.enter_context(_quiet())
        stack.enter_context(forgotten())
        if not lent:
            stack.enter_context(arguments_of(session.name))
        _led(lambda: prepare(torch))
        torch._dynamo.reset()  # noqa: SLF001  # nothing public forgets what was compiled
        stack.callback(torch._dynamo.reset)  # noqa: SLF001  # as above: it would not run on a real GPU
        dispatch.instead["scaled_dot_product_attention"] = run_or_traced(
            torch, attention(torch, tape, known, env), traced_attention(torch, env)
        )
        fake = stack.enter_context(world(torch, env, dispatch, dispatch.instead))
        stack.enter_context(causal_biases(torch, tape, env))
        stack.enter_context(kept(torch))
        stack.enter_context(reading(torch, dispatch))
        stack.enter_context(pinning(torch, dispatch.pinned))
        stack.enter_context(subscripts(torch))
        if not values:
            stack.enter_context(usual_outcomes(torch))
        regions = _led(lambda: _compiler(stack, torch, env, dispatch, fake))
        events = Events()
        dispatch.accumulation.calibrate()
        dispatch.reached_gpu = False
        try:
            session.tell("building")
            call = trying(tape, session.name, "be built", build)
            if lent:
                dispatch.everywhere = True
                held = [*named(torch, call)[1], *optimizers(torch, call)]
                call = stack.enter_context(borrowed(torch, known, call, held))
            elif not dispatch.reached_gpu:
                dispatch.everywhere = True
                with on_gpu(torch):
                    call = trying(tape, session.name, "be built", build)
                stack.enter_context(
                    torch.device("cuda", 0)
                )  # Dynamo would stop at a mode that it does not know
                call = moved(torch, call, named(torch, call)[1])
            stack.enter_context(of_data(torch, default_device(torch)))
            session.roots = named(torch, call)[1]
            tape.built()
            trying(tape, session.name, "run", lambda: _run(torch, tape, regions, call, session, events))
        except Stopped:
            pass
        for one in lost:
            tape.obstacle(f"autograd knows no gradient of {one}: the backward ends there")
        tell_of_nothing(tape)
        return _compiled(torch, tape, regions, session, events)


def _compiler(stack: ExitStack, torch: Any, env: Environment, dispatch: Dispatch, fake: Any) -> Regions:
    stack.enter_context(machine(torch, env, fake))
    stack.enter_context(passes(torch, trial(torch, env)))
    return stack.enter_context(compiling(torch, dispatch.tape, env, dispatch.known, dispatch.instead))


def _led(work: Callable[[], Any]) -> Any:
    """Do what depends on the inside of this PyTorch's compiler.

    Raises:
        CaptureError: it is made in another way.

    """
    try:
        return work()
    except (ImportError, AttributeError, TypeError) as error:
        raise CaptureError(
            "the compiler of this PyTorch cannot be led without a GPU", str(error).splitlines()[0],
            "use torch 2.11 to 2.13 for --compile, or leave it out",
        ) from error  # fmt: skip


def _run(  # noqa: PLR0917  # all of it is needed
    torch: Any, tape: Tape, regions: Regions, call: Call, session: _Session, events: Events
) -> None:
    for number in range(1, _CALLS + 1):
        session.tell(f"call {number} of {_CALLS}")
        before = len(regions.compiled)
        regions.forget_runs()
        tape.begin()
        try:
            if number == 1 and not compiles(torch, call.run):
                call = Call(torch.compile(call.run, mode=_given(session.mode)), call.args, call.kwargs)
            with _frames_counted(torch, session, last=number == _CALLS):
                ran(call.run(*call.args, **call.kwargs))
        except Exception as error:
            if not of_compiler(error):
                raise
            raise failed(session.name, tape, error) from error
        finally:
            tape.on = False
        session.calls = number
        session.recompiles += events.recompiles(number)
        session.steady = len(regions.compiled) == before


@contextmanager
def _frames_counted(torch: Any, session: _Session, *, last: bool) -> Iterator[None]:
    """Count the compiled frames that the last call enters, as a trace shows them: with or without a graph."""
    if not last:
        yield
        return
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    with profiler:
        yield
    session.frames = sum(event.name.startswith(_FRAME) for event in profiler.events())


def _compiled(torch: Any, tape: Tape, regions: Regions, session: _Session, events: Events) -> CompiledProgram:
    tuned = session.mode.startswith("max-autotune") or regions.tuned
    return CompiledProgram(
        program=program_of(torch, tape, session.name, session.roots),
        regions=regions.found(),
        runs=tuple(regions.runs),
        launches=MappingProxyType(dict(regions.launches)),
        breaks=events.breaks(),
        recompiles=tuple(one for one in session.recompiles if one.call > 1),
        inductor=str(torch.__version__),
        mode=session.mode,
        calls=session.calls,
        steady=session.steady,
        frames=session.frames or None,
        notes=(*((_TUNED,) if tuned else ()), *events.notes()),
    )


def compiles(torch: Any, run: Any) -> bool:
    """Whether a callable is, or holds, what `torch.compile` returned."""
    from torch._dynamo.eval_frame import OptimizedModule  # noqa: PLC0415  # an optional dependency

    def made(one: Any) -> bool:
        compiled = isinstance(one, torch.nn.Module) and one._compiled_call_impl is not None  # noqa: SLF001  # torch has no public way
        function = hasattr(one, "_torchdynamo_orig_callable") and not hasattr(one, "_torchdynamo_disable")
        return compiled or isinstance(one, OptimizedModule) or function

    modules = [one for module in named(torch, Call(run))[1] for one in module.modules()]
    return any(made(one) for one in (*reached(run), *modules))


def _given(mode: Mode) -> str | None:
    return None if mode == "default" else mode


@contextmanager
def _quiet() -> Iterator[dict[str, None]]:
    """Keep the compiler's advice for people who compile off the screen; give what has no gradient."""
    lost: dict[str, None] = {}

    def shown(message: Warning | str, *_: Any, **__: Any) -> None:
        found = _NO_GRADIENT.match(str(message))
        if found is not None:
            lost[found[1]] = None

    logger = logging.getLogger("torch")
    before = logger.level
    with warnings.catch_warnings(), patch.object(warnings, "showwarning", shown):
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", message=_NO_GRADIENT.pattern)
        logger.setLevel(logging.ERROR)
        try:
            yield lost
        finally:
            logger.setLevel(before)
