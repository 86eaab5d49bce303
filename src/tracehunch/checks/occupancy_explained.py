"""occupancy-explained: why the profiler reports a low or zero occupancy.

## What it means
Occupancy is the share of an SM's threads that a kernel keeps resident. The finding works it out again from
the registers per thread, shared memory and block size that the trace records and from the limits of the SM
in its header, says which of them is the limit, and compares the result with what the profiler wrote.

A recorded 0 % is usually not real. The profiler asks NVIDIA's occupancy calculator without telling it that
the kernel may use more than 48 KiB of dynamic shared memory, so every kernel with more is reported as 0 %:
most cuDNN attention, FlashAttention with large heads, Hopper's matrix kernels. Which call launched the
kernel (`cudaLaunchKernel`, `cuLaunchKernelEx`) does not matter.

A call such as `cudaOccupancyMaxActiveBlocksPerMultiprocessor` just before a launch is another matter: a
library, mostly of matrix products, asks how many blocks fit, and launches its kernel accordingly.

## Why it costs
It does not: the finding is a note and nothing is at stake. Attention and matrix kernels keep their tiles in
registers and shared memory on purpose, and hide latency with asynchronous copies instead of many threads.
About 12 % is normal for them.

## How to confirm
Compare `registers per thread`, `shared memory` and `block` of the kernel with the limits in
`deviceProperties`. In traces of torch 2.13 and later the artefact shows as `blockLimitSharedMem: 0` in the
kernel's `occupancy` entry.

## How to fix
Judge such kernels by the FLOP/s or bytes per second they reach, not by occupancy. Where the limit is the
grid (too few blocks for all SMs), more work per launch helps: for attention more batch or heads, or a kernel
that splits the keys; for a matrix product more rows or columns, or a kernel that splits the inner dimension.

## When it is fine
Always, for attention and matrix kernels near their usual numbers.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tracehunch.checks._activities import gpu_positions, uses
from tracehunch.checks._ancestry import enclosing
from tracehunch.checks._matrix import is_matrix_kernel
from tracehunch.checks._once import once
from tracehunch.checks._scopes import durations_us, place, total_us
from tracehunch.checks._sdpa_math import MATH_OP, SDPA_BACKEND
from tracehunch.facts.model import Facts, KernelUse, ScopeFacts
from tracehunch.hardware import MEASURABLE_SHARED_MEMORY, Occupancy, occupancy, sm_limits
from tracehunch.trace.model import Cat, Int64
from tracehunch.tree import NONE, Link
from tracehunch.tree.keys import Lookup
from tracehunch.tree.names import names_that
from tracehunch.units import count, join, plural, printable, shorten, size, table_percent
from tracehunch.verdict import CannotTell, Finding

ID: Final = "occupancy-explained"
_LOW_PERCENT: Final = 25
_ATTENTION_SHARE: Final = 0.01
_MATRIX_SHARE: Final = 0.2
"""What part of a scope's GPU time a kernel needs to take for its occupancy to be worth a word."""


_NOT_RECORDED: Final = (
    "the occupancy of no kernel can be worked out: the profiler records no registers on this GPU"
)


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Explain a low occupancy of attention kernels, and of the matrix kernel that leads a scope."""
    trace = facts.tree.trace
    if (trace.cat == Cat.KERNEL).any() and not (trace.gpu.registers > 0).any():
        yield CannotTell(ID, "whole", _NOT_RECORDED)
        return
    candidates = [use for use in uses(facts) if _is_attention(use) or is_matrix_kernel(use)]
    if not candidates:
        return
    where = place(facts)
    leading: dict[str, float] = {}  # the longest matrix kernel of each scope
    found = []
    for use in candidates:
        rows = np.asarray(use.rows, dtype=np.int64)
        for scope, chosen in where.by_scope(rows[facts.tree.link[rows] == Link.LINKED]):
            time = float(durations_us(facts.tree.trace, chosen).sum())
            found.append((scope, use, chosen, time))
            if is_matrix_kernel(use):
                leading[scope.scope.name] = max(time, leading.get(scope.scope.name, 0.0))
    for scope, use, rows, time in found:
        matters = time >= _ATTENTION_SHARE * total_us(facts, scope)
        leads = time >= max(_MATRIX_SHARE * total_us(facts, scope), leading.get(scope.scope.name, 0.0))
        if matters if _is_attention(use) else leads:
            yield from _explained(facts, scope, use, rows)


def _is_attention(use: KernelUse) -> bool:
    return (
        use.kind == "kernel"
        and use.identity.algorithm.startswith("attention-")
        and use.identity.unit != "none"
    )


@dataclass(frozen=True, slots=True)
class _Launch:
    """What the trace records of one launch of a kernel that bears on its occupancy."""

    registers: int  # per thread
    shared_memory: int  # bytes a block
    threads: int  # a block
    blocks: int  # in the grid; 0 where not recorded
    recorded: float | None  # occupancy in percent, as the profiler wrote it
    api: str  # the call that launched it
    says_shared_memory: bool  # its own occupancy entry names the artefact
    real: Occupancy


def _explained(
    facts: Facts, scope: ScopeFacts, use: KernelUse, rows: Int64
) -> Iterator[Finding | CannotTell]:
    trace = facts.tree.trace
    longest = int(rows[np.argmax(durations_us(trace, rows))])
    at = int(gpu_positions(facts, np.array([longest]))[0])
    if trace.gpu.occupancy_percent[at] >= _LOW_PERCENT:
        return
    launch = _launch(facts, longest, at)
    if launch is None:
        reason = (
            f"the occupancy of {_short(use.name)} cannot be worked out: its registers, shared memory and "
            "block size are not recorded, or the limits of this GPU are not known"
        )
        yield CannotTell(ID, scope.scope.name, reason)
        return
    said = (
        "the profiler gives none" if launch.recorded is None else f"the profiler says {launch.recorded:.0f}%"
    )
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="high",
        time_at_stake_us=0.0,
        summary=f"{_short(use.name)}: occupancy is {table_percent(launch.real.percent)} ({said}), limited by "
        f"{_limit(launch)}",
        cause=f"{_artefact(launch)}{_resident(launch)} {_kind(use)} hold their tiles in "
        f"registers and shared memory on purpose: about 12% is normal for them.{_transposes(facts, longest)}",
        fix=_fix(launch, use),
        evidence=trace.events(rows),
        subject=_short(use.name),
        per_call=round(len(rows) / len(scope.scope.calls), 1),
    )


def _launch(facts: Facts, row: int, at: int) -> _Launch | None:
    """Read a kernel row, also given as position in the GPU table; None where its occupancy cannot be told."""
    trace, gpu = facts.tree.trace, facts.tree.trace.gpu
    device = next((device for device in trace.header.devices if device.id == gpu.device[at]), None)
    sm = None if device is None else sm_limits(device.properties)
    registers, shared_memory, threads = (
        int(gpu.registers[at]),
        int(gpu.shared_memory[at]),
        _product(gpu.block[at]),
    )
    blocks = _product(gpu.grid[at])
    per_sm = (
        blocks / device.sms if device is not None and device.sms and blocks else float(gpu.blocks_per_sm[at])
    )
    if sm is None or registers < 0 or shared_memory < 0 or not 0 < threads <= sm.threads or not per_sm >= 0:
        return None
    recorded = float(gpu.occupancy_percent[at])
    launched_by = int(facts.tree.launch[row])
    tell: Any = trace.args_of(row).get("occupancy")
    return _Launch(
        registers=registers,
        shared_memory=shared_memory,
        threads=threads,
        blocks=blocks,
        recorded=None if math.isnan(recorded) else recorded,
        api="" if launched_by == NONE else printable(trace.name_of(launched_by), 60),
        says_shared_memory=isinstance(tell, dict) and tell.get("blockLimitSharedMem") == 0,
        real=occupancy(
            threads_per_block=threads,
            registers_per_thread=registers,
            shared_memory_bytes=shared_memory,
            blocks_per_sm=per_sm,
            sm=sm,
        ),
    )


def _product(sizes: Int64) -> int:
    """Multiply the sizes of a grid or block; 0 where they are not recorded."""
    return int(np.prod(sizes)) if (sizes >= 1).all() else 0


def _artefact(launch: _Launch) -> str:
    """Say why a recorded 0 % is none, where it is none."""
    if launch.recorded != 0 or launch.shared_memory <= MEASURABLE_SHARED_MEMORY:
        return ""
    entry = "; its occupancy entry says blockLimitSharedMem 0" if launch.says_shared_memory else ""
    api = f" (here {launch.api})" if launch.api else ""
    return (
        "The 0% is an artefact: the profiler's estimate admits at most 48 KiB of shared memory, and this "
        f"kernel uses {size(launch.shared_memory)}{entry}. The call that launched it{api} is not the cause. "
    )


def _resident(launch: _Launch) -> str:
    limits = dict(launch.real.limits)
    return (
        f"Of its blocks of {plural(launch.threads, 'thread')}, with {count(launch.registers)} registers a "
        f"thread and {size(launch.shared_memory)} of shared memory, an SM holds {launch.real.active_blocks} "
        f"at once (registers admit {count(limits['registers'])}, shared memory "
        f"{count(limits['shared memory'])})."
    )


def _transposes(facts: Facts, row: int) -> str:
    """Say how the inputs reach an attention kernel: some backends transpose views of them first."""
    tree = facts.tree
    sdpa = int(enclosing(tree, [row], _is_fused_backend)[0])
    if sdpa == NONE:
        return ""
    inside = _transposes_in(facts).having([sdpa]).size
    found = f"{plural(inside, 'transpose')} of views" if inside else "no transposes"
    return f" Inside {tree.trace.name_of(sdpa)}: {found}."


@once
def _transposes_in(facts: Facts) -> Lookup:
    """Return the fused backends' ops that transposes are in."""
    tree = facts.tree
    named = tree.ops[names_that(tree.trace, "aten::transpose".__eq__)[tree.trace.name[tree.ops]]]
    return Lookup.of(enclosing(tree, named, _is_fused_backend))


def _is_fused_backend(op: str) -> bool:
    return op.startswith(SDPA_BACKEND) and op != MATH_OP


def _limit(launch: _Launch) -> str:
    if launch.real.limited_by == "grid":
        return f"the grid ({plural(launch.blocks, 'block')} for all SMs)"
    words = {
        "registers": f"registers ({count(launch.registers)} a thread)",
        "shared memory": f"shared memory ({size(launch.shared_memory)} a block)",
    }
    tightest = [name for name, blocks in launch.real.limits if blocks == launch.real.active_blocks]
    return join([words.get(name, f"the number of {name} that an SM can hold") for name in tightest])


_NEARLY_FULL: Final = 0.9
_MORE_WORK: Final = {
    "attention": "More batch or heads a launch, or a kernel that splits the keys, fills more of it.",
    "gemm": "A product with more rows or columns (a larger batch), or a kernel that splits the inner "
    "dimension (split-K), fills more of it.",
    "conv": "A larger batch, or a kernel that splits the inner dimension, fills more of it.",
}
"""What gives a launch more blocks, by what its kernel does."""


def _fix(launch: _Launch, use: KernelUse) -> str:
    full = launch.real.percent >= _NEARLY_FULL * launch.real.theoretical_percent
    if launch.real.limited_by == "grid" and not full:
        return (
            "No kernel setting changes the occupancy: the launch has too few blocks to fill the GPU. "
            f"{_MORE_WORK[_family(use)]}"
        )
    return "Nothing to fix. Judge the kernel by the FLOP/s it reaches, not by occupancy."


def _kind(use: KernelUse) -> str:
    kinds = {"attention": "Attention kernels", "gemm": "Matrix kernels", "conv": "Convolution kernels"}
    return kinds[_family(use)]


def _family(use: KernelUse) -> str:
    return "attention" if _is_attention(use) else use.identity.algorithm


def _short(name: str) -> str:
    """Cut template and function arguments off a kernel's name; a CUTLASS kernel is its first argument."""
    name = (
        name.removeprefix("void ").removeprefix("cutlass::Kernel2<").removeprefix("cutlass::device_kernel<")
    )
    return shorten(printable(re.split(r"[<>(,]", name)[0] or name), 60)
