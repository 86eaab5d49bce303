"""What Inductor asks of a GPU and of Triton: answered for the GPU that was asked for, without either."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from tracehunch.capture.compiled.composed import composed
from tracehunch.capture.compiled.fallbacks import fallbacks
from tracehunch.capture.compiled.frames import own_frames_skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.predict.environment import Environment

_CACHED: Final = (
    ("torch._inductor.runtime.hints", "DeviceProperties", "create"),
    ("torch._inductor.utils", "", "is_big_gpu"),
    ("torch._inductor.utils", "", "get_device_tflops"),
    ("torch._inductor.utils", "", "get_gpu_dram_gbps"),
    ("torch._inductor.utils", "", "get_max_num_sms"),
)
"""Functions that remember a GPU's properties: module, class, name."""

_TERA: Final = 1e12
_GIGA: Final = 1e9


@contextmanager
def machine(torch: Any, env: Environment, fake: Any) -> Iterator[None]:
    """Answer Inductor's questions; to be entered where `torch.cuda` is pretended already."""
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="tracehunch-"))
        stack.enter_context(patch.dict(os.environ, {"TORCHINDUCTOR_CACHE_DIR": folder}))
        for owner, answers in _answers(torch, env, fake):
            for name, answer in answers.items():
                stack.enter_context(patch.object(owner, name, answer, create=True))
        stack.enter_context(_real_numbers(torch))
        stack.enter_context(_graph_trees())
        stack.enter_context(composed(torch))
        stack.enter_context(fallbacks(torch))
        stack.enter_context(own_frames_skipped())
        _forget()
        try:
            yield
        finally:
            _forget()


@contextmanager
def triton() -> Iterator[None]:
    """Let Inductor believe that Triton is installed: it writes kernels for it, nothing compiles them."""
    from torch.utils import _triton  # noqa: PLC0415  # an optional dependency

    asked = _triton.has_triton
    inductor = [
        module for name, module in list(sys.modules.items())
        if name.startswith("torch._inductor") and vars(module).get("has_triton") is asked
    ]  # fmt: skip
    with ExitStack() as stack:
        for module in (_triton, *inductor):
            stack.enter_context(patch.object(module, "has_triton", _yes))
        stack.enter_context(patch.object(_triton, "triton_hash_with_backend", lambda: "0"))
        yield


@contextmanager
def _real_numbers(torch: Any) -> Iterator[None]:
    """Hold on the host what the compiler wants to compute with on the GPU: constants that it folds."""
    aten = torch.ops.aten
    host = torch.device("cpu")

    def empty(size: Any, *, device: Any = None, pin_memory: Any = None, **options: Any) -> Any:  # noqa: ARG001  # the signature is torch's
        return aten.empty.memory_format(size, device=host, **options)

    def strided(size: Any, stride: Any, *, device: Any = None, pin_memory: Any = None, **options: Any) -> Any:  # noqa: ARG001  # the signature is torch's
        return aten.empty_strided.default(size, stride, device=host, **options)

    library = torch.library.Library("aten", "IMPL")
    try:
        library.impl("empty.memory_format", empty, "CUDA")
        library.impl("empty_strided", strided, "CUDA")
        yield
    finally:
        library._destroy()  # noqa: SLF001  # nothing else undoes a registration


@contextmanager
def _graph_trees() -> Iterator[None]:
    """Stand in for the module that replays CUDA graphs where a build without CUDA cannot load it."""
    made = ModuleType("torch._inductor.cudagraph_trees")
    made.__getattr__ = _anything  # type: ignore[method-assign]  # a module's own is asked
    with as_module(made):
        yield


def _anything(name: str) -> Callable[..., Any]:
    """Return what stands for a function; `inspect` asks every module for its `__file__` besides."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _nothing


@contextmanager
def as_module(made: ModuleType) -> Iterator[None]:
    """Let a module be imported by its name, where there is none; modules that are loaded meanwhile stay."""
    if made.__name__ in sys.modules:
        yield
        return
    sys.modules[made.__name__] = made
    try:
        yield
    finally:
        del sys.modules[made.__name__]


def _answers(torch: Any, env: Environment, fake: Any) -> list[tuple[Any, dict[str, Any]]]:
    from torch._dynamo.device_interface import CudaInterface  # noqa: PLC0415  # an optional dependency
    from torch._dynamo.variables.optimizer import OptimizerVariable  # noqa: PLC0415  # as above
    from torch._inductor import utils  # noqa: PLC0415  # an optional dependency
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: PLC0415  # as above
    from torch._subclasses.functional_tensor import FunctionalTensor  # noqa: PLC0415  # as above

    cuda = torch.cuda
    exchanged = {"_exchange_device": _zero, "_maybe_exchange_device": _zero, "_DeviceGuard": cuda.device}
    interface = {
        "current_device": _zero, "device_count": _one, "set_device": _nothing, "synchronize": _nothing,
        "exchange_device": _zero, "maybe_exchange_device": _zero, "memory_allocated": _zero,
        "get_raw_stream": _zero, "raise_if_triton_unavailable": _nothing,
        "get_device_properties": cuda.get_device_properties, "is_bf16_supported": cuda.is_bf16_supported,
    }  # fmt: skip
    speeds = {
        "get_device_tflops": lambda dtype: _tflops(env, str(dtype).removeprefix("torch.")),
        "get_gpu_dram_gbps": lambda: 0 if env.gpu is None else env.gpu.bandwidth / _GIGA,
    }
    return [
        (cuda, exchanged),
        (CudaInterface, {name: staticmethod(answer) for name, answer in interface.items()}),
        (CudaInterface.Worker, {"get_device_properties": staticmethod(cuda.get_device_properties)}),
        (utils, {name: answer for name, answer in speeds.items() if hasattr(utils, name)}),
        (FakeTensorMode, {"dispatch": _dispatch(torch), "avoid_device_init": property(_yes)}),
        (FakeTensor, {"__torch_dispatch__": _place(torch)}),
        (FunctionalTensor, _functional(torch)),
        (torch.Tensor, {"to": _to(torch)}),
        (OptimizerVariable, {"call_method": _begun(fake)}),
    ]


def _moved(torch: Any) -> Callable[..., Any]:
    here = torch.device("cuda", 0)

    def cuda(self: Any, device: Any = None, *_: Any, **options: Any) -> Any:  # noqa: ARG001  # there is one
        return self.to(here, **options)

    return cuda


def _functional(torch: Any) -> dict[str, Any]:
    """Return what tensors answer while a graph is traced; autocast is to be asked about them."""
    from torch._subclasses.functional_tensor import FunctionalTensor  # noqa: PLC0415  # an optional dependency

    base = torch._C.TensorBase.device  # noqa: SLF001  # before torch's own wrappers
    here = torch.device("cuda", 0)
    made, usual = FunctionalTensor.__new__, FunctionalTensor._extra_dispatch_keys  # noqa: SLF001  # as torch asks
    more = usual | torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)  # noqa: SLF001  # as above

    def place(self: Any) -> Any:
        found = base.__get__(self)
        return here if found.type == "meta" else found

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        FunctionalTensor._extra_dispatch_keys = more  # noqa: SLF001  # only here: elsewhere it says what to switch on
        try:
            return made(cls, *args, **kwargs)
        finally:
            FunctionalTensor._extra_dispatch_keys = usual  # noqa: SLF001  # as above

    return {
        "cuda": _moved(torch),
        "device": property(place),
        "is_cuda": property(lambda self: place(self).type == "cuda"),
        "__new__": new,
    }


def _to(torch: Any) -> Callable[..., Any]:
    """Leave on the host what has data, see `_real_numbers`."""
    without_data = torch.Tensor.to
    with_data = torch._C.TensorBase.to  # noqa: SLF001  # before it was replaced
    fake = torch._C._TorchDispatchModeKey.FAKE  # noqa: SLF001  # as torch asks
    python = torch._C.DispatchKey.Python  # noqa: SLF001  # as above

    def seen() -> bool:
        excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(python)  # noqa: SLF001  # as above
        return not excluded and torch._C._get_dispatch_mode(fake) is not None  # noqa: SLF001  # as above

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self) is not torch.Tensor or seen():
            return without_data(self, *args, **kwargs)
        kept = [one for one in args if not (isinstance(one, torch.device) and one.type == "cuda")]
        if len(kept) == len(args):
            return with_data(self, *args, **kwargs)
        return with_data(self, torch.device("cpu"), *kept, **kwargs)

    return to


def _begun(fake: Any) -> Callable[..., Any]:
    """Make an optimizer's state without data: Dynamo makes it for real, while it compiles the first step."""
    from torch._dynamo.variables.optimizer import OptimizerVariable  # noqa: PLC0415  # an optional dependency

    ordinary = OptimizerVariable.call_method

    def call_method(self: Any, tx: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if name != "_init_group":
            return ordinary(self, tx, name, *args, **kwargs)
        made = self.value._init_group  # noqa: SLF001  # what Dynamo calls

        def begin(*given: Any, **more: Any) -> Any:
            with fake:
                return made(*given, **more)

        with patch.object(self.value, "_init_group", begin):
            return ordinary(self, tx, name, *args, **kwargs)

    return call_method


def _place(torch: Any) -> Any:
    """They say so outside of all modes as well: guards compare what they heard at both times."""
    from torch._subclasses.fake_tensor import FakeTensor  # noqa: PLC0415  # an optional dependency

    ordinary = FakeTensor.__torch_dispatch__
    asked, meta = torch.ops.prim.device.default, torch.device("meta")

    def dispatch(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is asked and args[0].fake_device.type == "cuda":
            return meta
        return ordinary(func, types, args, kwargs or {})

    return classmethod(dispatch)


def _dispatch(torch: Any) -> Callable[..., Any]:
    """Tensors without data say to C++ that they are on `meta`, in each mode that the compiler makes."""
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: PLC0415  # an optional dependency

    ordinary = FakeTensorMode.dispatch
    asked = torch.ops.prim.device.default
    meta, cuda = torch.device("meta"), torch.device("cuda", 0)

    def dispatch(
        self: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is asked:
            device = args[0].fake_device if isinstance(args[0], FakeTensor) else args[0].device
            return meta if device.type == "cuda" else device
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if device is not None and device.type == "meta":
            kwargs = {**kwargs, "device": cuda}
        return ordinary(self, func, types, args, kwargs)

    return dispatch


def _tflops(env: Environment, dtype: str) -> float:
    from tracehunch.predict.ops.dtypes import dtype_word  # noqa: PLC0415  # loads only if used
    from tracehunch.predict.roofline import ceilings  # noqa: PLC0415  # as above

    found = None if env.gpu is None else ceilings(env.gpu, dtype_word(dtype))
    return 0.0 if found is None else found.flops / _TERA


def _forget() -> None:
    for module, owner, name in _CACHED:
        found: Any = sys.modules.get(module)
        found = getattr(found, owner, None) if owner else found
        clear = getattr(getattr(found, name, None), "cache_clear", None)
        if clear is not None:
            clear()


def _yes(*_: Any, **__: Any) -> bool:
    return True


def _zero(*_: Any, **__: Any) -> int:
    return 0


def _one(*_: Any, **__: Any) -> int:
    return 1


def _nothing(*_: Any, **__: Any) -> None:
    return None
