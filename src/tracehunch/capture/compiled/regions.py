"""In place of Inductor's compiler: it writes the code as ever; the code is then run without data."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tracehunch.capture.compiled.attention import attention, recognised
from tracehunch.capture.compiled.lines import innermost, own_innermost
from tracehunch.capture.compiled.machine import triton
from tracehunch.capture.compiled.passes import on_gpu
from tracehunch.capture.compiled.replaced import in_graph, inside, replacements
from tracehunch.capture.compiled.written import load
from tracehunch.capture.program.place import line
from tracehunch.predict.program.compiled import Region, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracehunch.capture.program.known import Known
    from tracehunch.capture.program.tape import Tape
    from tracehunch.predict.environment import Environment
    from tracehunch.predict.program.compiled import GeneratedKernel

_SETTINGS: Final = {
    "fx_graph_cache": False, "fx_graph_remote_cache": False, "profile_bandwidth": True, "compile_threads": 1,
    "max_autotune": False, "max_autotune_gemm": False, "max_autotune_pointwise": False,
    "coordinate_descent_tuning": False, "benchmark_fusion": False, "benchmark_epilogue_fusion": False,
    "benchmark_combo_kernel": False,
}  # fmt: skip
"""No caches, and nothing that would have to be measured; `profile_bandwidth` makes it say bytes."""


_NO_TRITON: Final = "No module named 'triton'"


class _Written(BaseException):  # no error, and none that the compiler may catch
    """The code of a graph is written: nothing remains but to compile its kernels."""


@dataclass(slots=True)
class _Graph:
    """A graph's code, before and after it is loaded."""

    code: str
    constants: Mapping[str, Any]
    strides: list[tuple[int, ...] | None]
    disabled: str


@dataclass(slots=True)
class Regions:
    """All graphs that were compiled, and their runs while the tape was on."""

    torch: Any
    tape: Tape
    env: Environment
    known: Known
    compiled: list[Region] = field(default_factory=list)
    kernels: list[Mapping[str, GeneratedKernel]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    launches: dict[int, GeneratedKernel] = field(default_factory=dict)
    tuned: bool = False
    """Whether a graph was to be compiled with max-autotune."""
    _given: frozenset[int] = frozenset()
    """The memory of what the region that runs was called with."""

    def forget_runs(self) -> None:
        """Start over with the runs; the graphs stay."""
        self.runs.clear()
        self.launches.clear()

    def found(self) -> tuple[Region, ...]:
        """Return the graphs, with the kernels that their runs launched."""
        pairs = zip(self.compiled, self.kernels, strict=True)
        return tuple(replace(region, kernels=MappingProxyType(dict(kernels))) for region, kernels in pairs)

    # ---- compiling

    def compile(self, graph_module: Any, inputs: Sequence[Any], **options: Any) -> Callable[[list[Any]], Any]:
        """Compile one graph: what Inductor calls its inner compiler."""
        on_gpu(self.torch, graph_module)
        region = self._region(graph_module, options)
        number = len(self.compiled)
        eager = self._copy(graph_module)
        self.tuned = self.tuned or _is_tuned()
        try:
            graph = _write(graph_module, inputs, options)
        except Exception as error:  # noqa: BLE001  # a compiler without its GPU may raise anything
            self._keep(region, options, unknown=_first_line(error))
            return self._boxed(number, lambda args: self._silent(eager, args))
        if graph is None:  # nothing in it computes
            self._keep(region, options)
            return self._boxed(number, lambda args: eager(*args))
        call, kernels = load(self.torch, graph.code, graph.constants, self._launched)
        self._keep(region, options, kernels, disabled=graph.disabled)
        _tell_strides(self.torch, graph.strides)
        return self._boxed(number, call)

    def _copy(self, graph_module: Any) -> Any:
        return self.torch.fx.GraphModule(graph_module, deepcopy(graph_module.graph))

    def _region(self, graph_module: Any, options: Mapping[str, Any]) -> Region:
        from torch._guards import CompileContext  # noqa: PLC0415  # an optional dependency

        compile_id = CompileContext.current_compile_id()
        number = options.get("graph_id")
        return Region(
            id="" if compile_id is None else str(compile_id),
            graph=len(self.compiled) if number is None else int(number),
            phase="backward" if options.get("is_backward") else "forward",
            line=_line_of(graph_module),
        )

    def _keep(
        self,
        region: Region,
        options: Mapping[str, Any],
        kernels: Mapping[str, GeneratedKernel] | None = None,
        *,
        unknown: str = "",
        disabled: str = "",
    ) -> None:
        wanted = bool(getattr(options.get("cudagraphs"), "value", options.get("cudagraphs")))
        replayed = wanted and not disabled and not unknown
        self.compiled.append(
            replace(region, unknown=unknown, replayed=replayed, not_replayed=disabled if wanted else "")
        )
        self.kernels.append({} if kernels is None else kernels)

    # ---- running

    def _boxed(self, number: int, call: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        def run(args: list[Any]) -> Any:
            first = len(self.tape.calls)
            self._given = frozenset(_memory(one) for one in args if self.torch.is_tensor(one))
            try:
                with self.tape.around(self.compiled[number].line):
                    return call(args)
            finally:
                if self.tape.on:
                    self.runs.append(Run(number, first, len(self.tape.calls)))

        run._boxed_call = True  # type: ignore[attr-defined]  # noqa: SLF001  # as torch tells such functions
        return run

    def _silent(self, eager: Any, args: list[Any]) -> Any:
        was, self.tape.on = self.tape.on, False
        try:
            return eager(*args)
        finally:
            self.tape.on = was

    def _launched(self, kernel: GeneratedKernel, tensors: list[Any]) -> None:
        before = len(self.tape.calls)
        self.tape.note_kernel(kernel.name, tensors)
        for one in tensors:
            if _memory(one) not in self._given:  # it may have been written
                self.known.forget(one)
        if len(self.tape.calls) > before:
            self.launches[before] = kernel


@contextmanager
def compiling(
    torch: Any, tape: Tape, env: Environment, known: Known, instead: Mapping[str, Callable[..., Any]]
) -> Iterator[Regions]:
    """Let `torch.compile` use this compiler, whoever calls it; yields what it makes.

    `instead` has what CUDA builds do in place of an operation, by its name.
    """
    from torch._functorch import config as functorch  # noqa: PLC0415  # an optional dependency
    from torch._inductor import compile_fx  # noqa: PLC0415  # as above

    regions = Regions(torch, tape, env, known)
    attend = attention(torch, env)
    others = replacements(torch, attend, instead)
    ordinary = compile_fx.compile_fx

    def replaced(graph_module: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(graph_module, torch.fx.GraphModule):
            in_graph(torch, graph_module, others)
        if not args:
            kwargs.setdefault("inner_compile", regions.compile)
        with inside(torch, others):
            return ordinary(graph_module, inputs, *args, **kwargs)

    with ExitStack() as stack:
        stack.enter_context(patch.object(compile_fx, "compile_fx", replaced))
        stack.enter_context(recognised(attend))
        stack.enter_context(functorch.patch(_known(functorch, {"enable_autograd_cache": False})))
        yield regions


def _memory(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)  # noqa: SLF001  # data_ptr is 0 without data


def _write(graph_module: Any, inputs: Sequence[Any], options: Mapping[str, Any]) -> _Graph | None:
    """Let Inductor write a graph's code; None where there is nothing to compute."""
    from torch._inductor import compile_fx, config  # noqa: PLC0415  # an optional dependency
    from torch._inductor.graph import GraphLowering  # noqa: PLC0415  # as above

    written: list[_Graph] = []

    def stop(self: Any) -> Any:
        code = self.codegen()
        code = code[0] if isinstance(code, tuple) else code
        written.append(
            _Graph(
                getattr(code, "value", code), dict(self.constants), _strides(self), _disabled(self, options)
            )
        )
        raise _Written

    with ExitStack() as stack:
        stack.enter_context(patch.object(GraphLowering, "compile_to_module", stop))
        stack.enter_context(triton())
        stack.enter_context(config.patch(_known(config, _SETTINGS)))
        try:
            compile_fx.compile_fx_inner(graph_module, inputs, **options)
        except _Written:
            return written[0]
    return None


def _known(config: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if hasattr(config, name)}


def _strides(graph: Any) -> list[tuple[int, ...] | None]:
    """Return the strides of a graph's outputs, None where they are not numbers."""
    found: list[tuple[int, ...] | None] = []
    for output in graph.graph_outputs or ():
        try:
            found.append(tuple(int(step) for step in output.get_stride()))
        except (AttributeError, NotImplementedError, TypeError, ValueError):
            found.append(None)
    return found


def _tell_strides(torch: Any, strides: list[tuple[int, ...] | None]) -> None:
    """Tell the compiler of the backward how a forward's outputs lie in memory, as Inductor does."""
    context = torch._guards.TracingContext.try_get()  # noqa: SLF001  # where Inductor tells it
    asked = None if context is None else getattr(context, "output_strides", None)
    if asked is not None and not asked:
        asked.extend(strides)


def _disabled(graph: Any, options: Mapping[str, Any]) -> str:
    """Return why a graph does not become a CUDA graph, "" where it does or is not asked to."""
    del options
    return (getattr(graph, "disable_cudagraphs_reason", None) or "").strip()


def _is_tuned() -> bool:
    from torch._inductor import config  # noqa: PLC0415  # an optional dependency

    return bool(config.max_autotune or config.max_autotune_gemm)


def _line_of(graph_module: Any) -> str:
    """Return the user's line of a graph's first operation, as "model.py:12".

    Where a function of a library is compiled by itself it is the line that calls it.
    """
    traces = [node.meta.get("stack_trace") for node in graph_module.graph.nodes if node.op == "call_function"]
    found = [trace for trace in traces if trace]
    own = next(filter(None, map(own_innermost, found)), "")
    return own or line() or next(filter(None, map(innermost, found)), "")


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    if text and _NO_TRITON in text[0]:
        return "what it needs is a template of Triton's, which is not installed"
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
