"""What `torch.cuda` answers while a program is recorded: there is one GPU, the one that was asked for."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tracehunch.capture.program.replacing import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.predict.environment import Environment

_TURING = (7, 5)
_AMPERE = (8, 0)


@contextmanager
def pretended(torch: Any, env: Environment) -> Iterator[None]:
    """Answer for a GPU that is not there; nothing reaches a real one either. All is undone at the end."""
    with ExitStack() as stack:
        for owner, answers in _answers(torch, env):
            for name, answer in answers.items():
                if hasattr(owner, name):
                    change = patch.object if isinstance(answer, type) else replaced
                    stack.enter_context(change(owner, name, answer))
        yield


def _answers(torch: Any, env: Environment) -> list[tuple[Any, dict[str, Any]]]:
    cuda = torch.cuda
    return [
        (cuda, _device(env) | _memory(env) | _waiting(torch) | _seeds(torch)),
        (cuda.random, _seeds(torch)),
        (torch._C, {"_cuda_getDeviceCount": lambda: 1, "_cuda_init": _nothing}),  # noqa: SLF001  # where asked
        (cuda.nvtx, dict.fromkeys(("range_push", "range_pop", "range_start", "range_end", "mark"), _zero)),
        (torch.backends.cuda, {"is_built": lambda: True}),
        (torch.backends.cudnn, {"is_available": lambda: True, "version": lambda: env.cudnn}),
    ]


def _device(env: Environment) -> dict[str, Any]:
    major, minor = env.compute_capability or _AMPERE
    name = "NVIDIA GPU" if env.gpu is None else f"NVIDIA {env.gpu.name}"
    properties = SimpleNamespace(
        name=name, major=major, minor=minor, multi_processor_count=0 if env.gpu is None else env.gpu.sms,
        total_memory=_total(env), warp_size=32, max_threads_per_multi_processor=2048, gcnArchName="",
        L2_cache_size=0 if env.gpu is None else env.gpu.l2_bytes or 0, is_integrated=False,
        is_multi_gpu_board=False, regs_per_multiprocessor=65536, shared_memory_per_block=49152, uuid="",
    )  # fmt: skip
    index = {"current_device": lambda: 0, "device_count": lambda: 1, "set_device": _nothing}
    return index | {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_is_compiled": lambda: True,
        "init": _nothing,
        "_lazy_init": _nothing,
        "is_bf16_supported": lambda including_emulation=True: including_emulation or major >= _AMPERE[0],
        "get_device_capability": lambda device=None: (major, minor),  # noqa: ARG005  # torch's signature
        "get_device_properties": lambda device=None: properties,  # noqa: ARG005  # the signature is torch's
        "get_device_name": lambda device=None: name,  # noqa: ARG005  # the signature is torch's
        "get_arch_list": lambda: [f"sm_{major}{minor}"],
        "can_device_access_peer": lambda *_: False,
        "device": _Context,
        "is_current_stream_capturing": lambda: False,
    }


def _memory(env: Environment) -> dict[str, Any]:
    zero = dict.fromkeys(
        ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"), _zero
    )
    forgotten = dict.fromkeys(
        ("empty_cache", "reset_peak_memory_stats", "reset_max_memory_allocated", "ipc_collect",
         "set_per_process_memory_fraction", "reset_accumulated_memory_stats"), _nothing
    )  # fmt: skip
    total = _total(env)
    return (
        zero
        | forgotten
        | {
            "mem_get_info": lambda device=None: (total, total),  # noqa: ARG005  # the signature is torch's
            "memory_stats": lambda device=None: {},  # noqa: ARG005  # the signature is torch's
            "memory_summary": lambda *_, **__: "",
        }
    )


def _waiting(torch: Any) -> dict[str, Any]:
    stream = _stream_class(torch)
    current = stream()
    return {
        "synchronize": _nothing,
        "current_stream": lambda device=None: current,  # noqa: ARG005  # the signature is torch's
        "default_stream": lambda device=None: current,  # noqa: ARG005  # the signature is torch's
        "Stream": stream,
        "Event": _event_class(),
        "stream": _Context,
        "set_stream": _nothing,
    }


def _seeds(torch: Any) -> dict[str, Callable[..., Any]]:
    state = torch.zeros(16, dtype=torch.uint8, device="cpu")
    return {
        "manual_seed": _nothing, "manual_seed_all": _nothing, "seed": _nothing, "seed_all": _nothing,
        "initial_seed": _zero, "set_rng_state": _nothing, "set_rng_state_all": _nothing,
        "get_rng_state": lambda device=None: state.clone(),  # noqa: ARG005  # the signature is torch's
        "get_rng_state_all": lambda: [state.clone()],
    }  # fmt: skip


def _total(env: Environment) -> int:
    return 0 if env.gpu is None else env.gpu.memory_bytes


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _zero(*_: Any, **__: Any) -> int:
    return 0


class _Context:
    """`torch.cuda.device` and `torch.cuda.stream`: a block that changes nothing."""

    def __init__(self, *_: Any) -> None:
        self.idx = 0
        self.prev_idx = 0

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _stream_class(torch: Any) -> type:
    class Stream:
        """A stream on which nothing runs."""

        cuda_stream = 0
        device_index = 0
        device_type = 1
        stream_id = 0

        def __init__(self, *_: Any, **__: Any) -> None:
            self.device = torch.device("cuda", 0)

        def __enter__(self) -> None:
            return None

        def __exit__(self, *_: object) -> None:
            return None

        def record_event(self, event: Any = None) -> Any:
            return event or _event_class()()

        def query(self) -> bool:
            return True

        synchronize = wait_event = wait_stream = _nothing

    return Stream


def _event_class() -> type:
    class Event:
        """An event that has happened."""

        def __init__(self, *_: Any, **__: Any) -> None:
            self.cuda_event = 0

        def query(self) -> bool:
            return True

        def elapsed_time(self, _end: Any) -> float:
            return 1.0  # none is known; no division by it fails

        record = wait = synchronize = _nothing

    return Event
