"""What the names of host rows say: profiler steps, and annotations that PyTorch and its libraries write."""

import re
from collections.abc import Callable, Hashable
from types import FunctionType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Cat, Trace

STEP_PREFIX: Final = "ProfilerStep#"
STEP: Final = "ProfilerStep"
ENGINE_PREFIX: Final = "autograd::engine::evaluate_function"
MODULE_PREFIX: Final = "nn.Module: "

_FRAMEWORK: Final = re.compile(
    r"Optimizer\.(?:step|zero_grad)#"  # torch.optim
    r"|enumerate\(\w*(?:DataLoader|DataPipe)\w*\)#"  # torch.utils.data
    r"|(?:nccl|rccl|gloo|mpi|ucc|xccl|oneccl|hccl|mccl):"  # c10d, one per collective
    r"|(?:Distributed)?DataParallel\.|FullyShardedDataParallel\.|FSDP2?::|DDP::|torch\.distributed"
    r"|PP:|(?:rpc_sync|rpc_async|rpc_torchscript|remote)#"  # pipelining; distributed RPC
    r"|## Call CompiledFxGraph |## \d+ ##$|## ENTER_GRAPH_PLACEHOLDER_KEY ##"  # Inductor; FX
    r"|Torch-Compiled Region|TorchDynamo |TORCHDYNAMO$|AOTDispatcher |Pregraph bytecode|CompiledFunction"
    r"|graph_\d+_inductor_wrapper_call|inductor_do_bench_using_profiling"
    r"|.*\(dynamo_timed\)$"  # phases of a compilation: torch 2.6 and later
    # their metadata, torch 2.9 and later: "<phase>_data: key=value, ..."
    r"|[\w.<>]+_data: \w+=",
    re.DOTALL,
)
_REGION: Final = re.compile(r"Torch-Compiled Region|## Call CompiledFxGraph ")
_STEP: Final = re.compile(r"ProfilerStep#(\d+)")


def is_framework(name: str) -> bool:
    """Whether PyTorch or one of its libraries wrote an annotation, not the user."""
    return _FRAMEWORK.match(name) is not None


def is_compiled_region(name: str) -> bool:
    """Tell rows that are annotations in all but category: what torch.compile puts around the code it made."""
    return _REGION.match(name) is not None


def is_step_name(name: str) -> bool:
    """Tell the names of the profiler's steps."""
    return name.startswith(STEP_PREFIX)


def step_number(name: str) -> int:
    """Return the number of a ``ProfilerStep#N``; -1 where it has none."""
    found = _STEP.match(name)
    return -1 if found is None else int(found.group(1))


def names_that(trace: Trace, wanted: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Which of the trace's interned names satisfy ``wanted``; index it with ``trace.name``.

    Worked out once for each function that depends on nothing but the name.
    """
    key = _identity(wanted)
    known = None if key is None else trace.masks.get(key)
    if known is None:
        known = np.fromiter(map(wanted, trace.names), dtype=bool, count=len(trace.names))
        known.flags.writeable = False  # everybody gets the same one
        if key is not None:
            trace.masks[key] = known
    return known


def _identity(wanted: Callable[[str], bool]) -> Hashable | None:
    """Return what is alike for functions that are, a lambda made anew too; None for those with variables."""
    if isinstance(wanted, FunctionType):
        varies = wanted.__closure__ or wanted.__defaults__ or wanted.__kwdefaults__
        return None if varies else (wanted.__module__, wanted.__code__)
    return wanted if isinstance(getattr(wanted, "__self__", None), str | frozenset) else None


def is_step(trace: Trace) -> NDArray[np.bool_]:
    """Mask of the profiler's steps on the host; in traces of PyTorch 1.8 to 1.11 they are operators."""
    steps = names_that(trace, is_step_name)
    if not steps.any():
        return np.zeros(len(trace), dtype=bool)
    on_host = (trace.cat == Cat.USER_ANNOTATION) | (trace.cat == Cat.CPU_OP)
    known: NDArray[np.bool_] = on_host & steps[trace.name]
    return known


def is_op(trace: Trace) -> NDArray[np.bool_]:
    """Mask of the ops: cpu_op rows that are no profiler steps."""
    mask: NDArray[np.bool_] = (trace.cat == Cat.CPU_OP) & ~is_step(trace)
    return mask
