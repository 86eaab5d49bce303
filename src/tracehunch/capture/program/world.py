"""The world in which a program is recorded: tensors without data, on a GPU that is not there.

They are torch's fake tensors on `cuda`. Where C++ asks for their device it hears `meta`: its autograd engine
would otherwise look for the streams of a GPU. Python code hears `cuda`.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tracehunch.capture.program.autocast import autocast
from tracehunch.capture.program.composites import composites
from tracehunch.capture.program.data import of_data
from tracehunch.capture.program.gpu import pretended
from tracehunch.capture.program.moves import moves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.predict.environment import Environment

_ASKED: Final = (("transformers.utils.import_utils", "is_fake_tensor"),)
"""Functions that ask whether a tensor is fake, by module."""


@contextmanager
def world(torch: Any, env: Environment, handle: Callable[..., Any], instead: dict[str, Any]) -> Iterator[Any]:
    """Pretend a GPU; every call below autograd goes through `handle(func, args, kwargs, mode)`.

    `instead` says what is done in the place of operations, by name; it is added to. Yields the fake mode.
    """
    with ExitStack() as stack:
        fake = fake_mode(torch)  # loads much of torch, which must not take the pretended GPU for a real one
        stack.enter_context(pretended(torch, env))
        for change in _answers_of_tensors(torch):
            stack.enter_context(change)
        stack.enter_context(composites(torch, env, instead))
        stack.enter_context(moves(torch))
        stack.enter_context(of_data(torch))
        stack.enter_context(patch.object(torch, "Generator", _generator(torch)))
        stack.enter_context(autocast(torch))
        # on this thread: the modes and what they note belong to it
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        stack.enter_context(fake)
        stack.enter_context(_dispatch_mode(handle))
        yield fake


def fake_mode(torch: Any) -> Any:
    """Return a mode in which tensors have no data and those on the GPU say to C++ that they are on `meta`."""
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: PLC0415  # an optional dependency

    asked = torch.ops.prim.device.default
    meta, cuda = torch.device("meta"), torch.device("cuda", 0)

    class FakeGpu(FakeTensorMode):  # type: ignore[misc]  # torch is not typed here
        avoid_device_init = True

        def dispatch(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if func is asked:
                device = args[0].fake_device if isinstance(args[0], FakeTensor) else args[0].device
                return meta if device.type == "cuda" else device
            kwargs = kwargs or {}
            device = kwargs.get("device")
            if device is not None and device.type == "meta":
                kwargs = {**kwargs, "device": cuda}
            return super().dispatch(func, types, args, kwargs)

    return FakeGpu(allow_non_fake_inputs=True, allow_fallback_kernels=False)


def _dispatch_mode(handle: Callable[..., Any]) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415  # an optional dependency

    class Recording(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
        supports_higher_order_operators = True

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            return handle(func, args, kwargs or {}, self)

        @classmethod
        def is_infra_mode(cls) -> bool:
            return True  # torch.compile would run nothing but Python under another's mode

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True  # as above, in later versions

    return Recording()


def _answers_of_tensors(torch: Any) -> list[Any]:
    """Return what Python code is to hear of fake tensors: where they are, that they are like others."""
    from torch._subclasses import fake_tensor  # noqa: PLC0415  # an optional dependency
    from torch._subclasses.fake_tensor import FakeTensor  # noqa: PLC0415  # an optional dependency
    from torch.optim import optimizer  # noqa: PLC0415  # an optional dependency
    from torch.utils import _foreach_utils  # noqa: PLC0415  # an optional dependency

    def on(kind: str) -> property:
        return property(lambda self: self.fake_device.type == kind)

    grouped = torch._C._group_tensors_by_device_and_dtype  # noqa: SLF001  # what optimizers group with

    def grouped_on_gpu(*args: Any, **kwargs: Any) -> Any:
        found = grouped(*args, **kwargs)
        return {(_seen(torch, device), dtype): lists for (device, dtype), lists in found.items()}

    changes = {
        "is_cuda": on("cuda"),
        "is_cpu": on("cpu"),
        "is_meta": on("meta"),
        "get_device": lambda self: 0 if self.fake_device.type == "cuda" else -1,
    }
    made = [patch.object(FakeTensor, name, value, create=True) for name, value in changes.items()]
    made += [
        patch.object(fake_tensor, name, lambda _: None)  # a real GPU is left alone
        for name in ("init_gpu_context", "init_cuda_context")
        if hasattr(fake_tensor, name)
    ]
    made.append(patch.object(torch._C, "_group_tensors_by_device_and_dtype", grouped_on_gpu))  # noqa: SLF001  # torch has no public way
    made.append(patch.object(FakeTensor, "__deepcopy__", _copied(torch), create=True))
    made.append(patch.object(torch.nn.RNNBase, "flatten_parameters", lambda _: None))  # asks for addresses
    made.append(patch.object(torch.utils, "swap_tensors", _swapped(torch)))
    for owner in (optimizer, _foreach_utils):
        supported = getattr(owner, "_foreach_supported_types", None)
        if supported is not None:
            made.append(patch.object(owner, "_foreach_supported_types", [*supported, FakeTensor]))
    return made


@contextmanager
def as_real() -> Iterator[None]:
    """Keep libraries that are loaded by now from treating tensors without data as those of an export."""
    with ExitStack() as stack:
        for module, name in _ASKED:
            loaded = sys.modules.get(module)
            if loaded is not None and hasattr(loaded, name):
                stack.enter_context(patch.object(loaded, name, lambda _: False))
        yield


def _generator(torch: Any) -> type:
    class Generator(torch.Generator):  # type: ignore[misc]  # torch is not typed here
        """One of the GPU is one of the CPU that says otherwise."""

        def __new__(cls, device: Any = "cpu") -> Any:
            made = super().__new__(cls, "cpu")
            made._place = torch.device(device)
            return made

        @property
        def device(self) -> Any:
            return self._place

    return Generator


def _copied(torch: Any) -> Callable[[Any, dict[int, Any]], Any]:
    """Make deep copies without copying memory that is not there."""

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            with torch.no_grad():
                made = self.detach().clone()
            made = torch.nn.Parameter(made) if isinstance(self, torch.nn.Parameter) else made
            memo[id(self)] = made.requires_grad_(self.requires_grad)
        return memo[id(self)]

    return copied


def _swapped(torch: Any) -> Callable[[Any, Any], None]:
    """Exchange tensors as `Module.to` does with fake ones, be they referred to or not."""

    def swap(one: Any, other: Any) -> None:
        one.__class__, other.__class__ = other.__class__, one.__class__
        one.__dict__, other.__dict__ = other.__dict__, one.__dict__
        torch._C._swap_tensor_impl(one, other)  # noqa: SLF001  # what torch.utils.swap_tensors ends in

    return swap


def _seen(torch: Any, device: Any) -> Any:
    return torch.device("cuda", 0) if device is not None and device.type == "meta" else device
