"""The Python code that Inductor writes for a graph, run on tensors without data: each launch is noted.

It allocates, calls library operations and launches kernels, as it would on a GPU. Allocations become tensors
without data, library operations are noted as everywhere in a program, and in place of each kernel stands an
object that notes its launch.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tracehunch.capture.compiled.machine import as_module
from tracehunch.predict.program.compiled import GeneratedKernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_ATEN: Final = re.compile(r"Original ATen: \[(.*)\]")
_DEFINED: Final = re.compile(r"async_compile\.triton\('(\w+)'")
_KIND: Final = re.compile(r"triton_([a-z]+)_fused")
_BYTES: Final = re.compile(r"'kernel_num_gb': ([0-9.e+-]+)")
_OUTER: Final = ("xnumel", "ynumel", "znumel")
_GIGA: Final = 1e9


def load(
    torch: Any,
    code: str,
    constants: Mapping[str, Any],
    launched: Callable[[GeneratedKernel, list[Any]], None],
) -> tuple[Callable[[list[Any]], Any], Mapping[str, GeneratedKernel]]:
    """Return the function that runs a graph's code on one list of inputs, and its kernels on the GPU."""
    kernels = _Kernels(torch, _operations(code), launched)
    space: dict[str, Any] = {"__name__": "compiled_graph", "__file__": "<compiled graph>"}
    with _without_triton(torch, kernels):
        exec(compile(code, "<compiled graph>", "exec"), space)  # noqa: S102  # what torch.compile itself would run
    space.update(constants)
    space.update(_allocations(torch))
    return space["call"], kernels.found


def _operations(code: str) -> dict[str, tuple[str, ...]]:
    """Return the operations merged in each kernel, from the comment above it."""
    found: dict[str, tuple[str, ...]] = {}
    listed: tuple[str, ...] = ()
    for line in code.splitlines():
        above = _ATEN.search(line)
        if above is not None:
            listed = tuple(name.partition(".")[2] or name for name in above[1].split(", ") if name)
        defined = _DEFINED.search(line)
        if defined is not None:
            found[defined[1]] = listed
    return found


class _Kernels:
    """Stands where the code asks for its kernels to be compiled."""

    def __init__(
        self,
        torch: Any,
        operations: Mapping[str, tuple[str, ...]],
        launched: Callable[[GeneratedKernel, list[Any]], None],
    ) -> None:
        self.found: dict[str, GeneratedKernel] = {}
        self._torch = torch
        self._operations = operations
        self._launched = launched

    def __call__(self) -> _Kernels:
        return self

    def triton(self, name: str, source: str, **_: Any) -> _Kernel:
        """Take a Triton kernel."""
        kind, moved = _KIND.match(name), _BYTES.search(source)
        self.found[name] = GeneratedKernel(
            name=name,
            kind="" if kind is None else kind[1],
            ops=self._operations.get(name, ()),
            bytes=None if moved is None else round(float(moved[1]) * _GIGA),
        )
        return _Kernel(self._torch, self, name, _parameters(name, source))

    def wait(self, _: Any) -> None:
        """Wait for nothing."""

    def __getattr__(self, _: str) -> Callable[..., Any]:
        return lambda *_, **__: _on_host

    def launch(self, name: str, tensors: list[Any], numbers: Mapping[str, int]) -> None:
        """Note a launch."""
        kernel = self.found[name]
        if numbers and not kernel.elements:
            kernel = self.found[name] = _sized(kernel, numbers)
        self._launched(kernel, tensors)


class _Kernel:
    """Stands for a compiled kernel."""

    def __init__(self, torch: Any, kernels: _Kernels, name: str, parameters: tuple[str, ...]) -> None:
        self._torch = torch
        self._kernels = kernels
        self._name = name
        self._parameters = parameters

    def run(self, *args: Any, **_: Any) -> None:
        """Note a launch."""
        numbers = {
            name: int(value) for name, value in zip(self._parameters, args, strict=False)
            if name.endswith("numel") and not self._torch.is_tensor(value)
        }  # fmt: skip
        self._kernels.launch(self._name, [one for one in args if self._torch.is_tensor(one)], numbers)


def _on_host(*_: Any, **__: Any) -> None:
    """Stand for C++ code, which runs on the host."""


def _parameters(name: str, source: str) -> tuple[str, ...]:
    """Return the names of a kernel's arguments, without those that are fixed when it is compiled."""
    found = re.search(rf"def {name}\((.*?)\):", source, re.DOTALL)
    if found is None:
        return ()
    return tuple(one.strip() for one in found[1].split(",") if ":" not in one)


def _sized(kernel: GeneratedKernel, numbers: Mapping[str, int]) -> GeneratedKernel:
    length = prod(value for name, value in numbers.items() if name not in _OUTER)
    return replace(kernel, elements=prod(numbers.values()), length=length)


@contextmanager
def _without_triton(torch: Any, kernels: _Kernels) -> Iterator[None]:
    """Let the code's imports succeed."""
    from torch._inductor import async_compile  # noqa: PLC0415  # an optional dependency

    with ExitStack() as stack:
        language = ModuleType("triton.language")
        whole = ModuleType("triton")
        whole.language = language  # type: ignore[attr-defined]  # a module takes any attribute
        for made in (whole, language):
            stack.enter_context(as_module(made))
        stack.enter_context(patch.object(async_compile, "AsyncCompile", kernels))
        if not hasattr(torch._C, "_cuda_getCurrentRawStream"):  # noqa: SLF001  # what the code imports
            stack.enter_context(
                patch.object(torch._C, "_cuda_getCurrentRawStream", _on_host, create=True)  # noqa: SLF001  # torch has no public way
            )
        yield


def _allocations(torch: Any) -> dict[str, Any]:
    """Return what stands for C++ functions that would go round the modes in which tensors have no data."""

    def on(device: str) -> Callable[..., Any]:
        def allocated(size: Any, stride: Any, dtype: Any) -> Any:
            return torch.empty_strided(size, stride, dtype=dtype, device=device)

        return allocated

    def reinterpreted(tensor: Any, size: Any, stride: Any, offset: int = 0) -> Any:
        return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)

    def kept(tensor: Any) -> Any:
        return tensor

    return {
        "empty_strided_cuda": on("cuda"),
        "empty_strided_cpu": on("cpu"),
        "empty_strided_cpu_pinned": on("cpu"),
        "reinterpret_tensor": reinterpreted,
        "copy_if_misaligned": kept,
        "assert_size_stride": _on_host,
        "assert_alignment": _on_host,
        "get_raw_stream": lambda _: 0,
    }
