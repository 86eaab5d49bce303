"""The GPU activities of a scope by time as cells of a table; for a trace without any, its ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.report.roofline_text import kernel_text, peaks_text
from tracehunch.report.scope_ops import ops_of
from tracehunch.tree import NONE, Tree
from tracehunch.units import count, percent, plural, printable, share, time_column, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.facts.model import KernelUse, ScopeFacts
    from tracehunch.kernels import Identity
    from tracehunch.report.summary import Selection
    from tracehunch.verdict import Look

_UNIT_WORDS: Final = {
    "tensor-core": "tensor cores",
    "cuda-core": "CUDA cores",
    "mfma": "MFMA",
    "vector": "vector units",
}


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One GPU activity's cells."""

    share: str
    time: str
    per_call: str
    occupancy: str
    limit: str
    op: str
    what: str
    name: str


@dataclass(frozen=True, slots=True)
class KernelTable:
    """The GPU activities of one scope by time, and what of them is not shown or not known."""

    scope: str
    calls: int
    rows: tuple[KernelRow, ...]
    rest: str
    unclassified: str
    peaks: str


@dataclass(frozen=True, slots=True)
class OpRow:
    """One op's cells, where nothing ran on a GPU."""

    share: str
    self_time: str
    total_time: str
    calls: str
    op: str


@dataclass(frozen=True, slots=True)
class OpTable:
    """The ops of one scope by the time in themselves, and what of them is not shown."""

    scope: str
    calls: int
    rows: tuple[OpRow, ...]
    rest: str


def kernel_tables(look: Look, selection: Selection) -> list[KernelTable]:
    """Return the kernels of the selected scopes, else of the step if there is one, else of the trace."""
    return [_kernel_table(scope, look.facts.tree, selection.top) for scope in main_scopes(look, selection)]


def main_scopes(look: Look, selection: Selection) -> list[ScopeFacts]:
    """Return the selected scopes with GPU activities, else the step if it has any, else the trace."""
    if selection.scopes:
        scopes = look.facts.scopes
        return [scope for scope in scopes if scope.scope.name in selection.scopes and scope.kernels]
    return _main_scope(look.facts.scopes)


def op_tables(look: Look, selection: Selection) -> list[OpTable]:
    """Return the ops of the selected scopes that have nothing on a GPU; else of a trace without GPU work."""
    tree, scopes = look.facts.tree, look.facts.scopes
    if selection.scopes:
        chosen = [scope for scope in scopes if scope.scope.name in selection.scopes and not scope.kernels]
    else:
        on_gpu = len(tree.trace.gpu.row)
        chosen = [scope for scope in scopes if scope.scope.kind == "whole" and not on_gpu]
    tables = [_op_table(scope, tree, selection.top) for scope in chosen]
    return [one for one in tables if one.rows]


def _op_table(scope: ScopeFacts, tree: Tree, top: int) -> OpTable:
    ops = ops_of(scope, tree)
    total = sum(op.self_us for op in ops)
    shown = [op for op in ops if op.self_us > 0][:top]
    own, whole = (time_column([getattr(op, key) for op in shown]) for key in ("self_us", "total_us"))
    rows = [
        OpRow(share(op.self_us, total), self_time, total_time, count(op.per_call), printable(op.name))
        for op, self_time, total_time in zip(shown, own, whole, strict=True)
    ]
    name = "the whole trace" if scope.scope.kind == "whole" else printable(scope.scope.name)
    return OpTable(name, len(scope.scope.calls), tuple(rows), _rest(len(ops), len(shown)))


def _rest(n: int, shown: int) -> str:
    return f"{count(n - shown)} more; --top {n} lists all" if n > shown else ""


def identity_text(identity: Identity) -> str:
    """Library, algorithm, data type and math unit of a kernel, in a few words."""
    if not identity.classified:
        return "unclassified"
    words = [] if identity.library == "driver" else [identity.library]
    words += [identity.algorithm, identity.dtype or ""]
    unit = f", {_UNIT_WORDS[identity.unit]}" if identity.unit in _UNIT_WORDS else ""
    return printable(" ".join(filter(None, words)) + unit)


def _main_scope(scopes: Sequence[ScopeFacts]) -> list[ScopeFacts]:
    for kind in ("step", "whole"):
        found = [scope for scope in scopes if scope.scope.kind == kind and scope.kernels]
        if found:
            return found[:1]
    return []


def _kernel_table(scope: ScopeFacts, tree: Tree, top: int) -> KernelTable:
    total = sum(kernel.gpu_time_us for kernel in scope.kernels)
    times = time_column([kernel.gpu_time_us for kernel in scope.kernels[:top]])
    rows = [
        _kernel_row(kernel, tree, total, time)
        for kernel, time in zip(scope.kernels[:top], times, strict=True)
    ]
    hidden = scope.kernels[top:]
    rest = ""
    if hidden:
        hidden_us = sum(kernel.gpu_time_us for kernel in hidden)
        all_of_them = f"--top {len(scope.kernels)} lists all"
        rest = f"{count(len(hidden))} more, {share(hidden_us, total)} of the time; {all_of_them}"
    return KernelTable(
        scope=printable(scope.scope.name),
        calls=len(scope.scope.calls),
        rows=tuple(rows),
        rest=rest,
        unclassified=_unclassified(scope, total),
        peaks=peaks_text(tree.trace) if any("%" in row.limit for row in rows) else "",
    )


def _kernel_row(kernel: KernelUse, tree: Tree, total_us: float, time: str) -> KernelRow:
    return KernelRow(
        share=share(kernel.gpu_time_us, total_us),
        time=time,
        per_call=count(kernel.per_call),
        occupancy="" if kernel.occupancy_percent is None else percent(kernel.occupancy_percent),
        limit=kernel_text(kernel.work),
        op=printable(kernel.op or _launcher(kernel, tree)),
        what=identity_text(kernel.identity),
        name=printable(kernel.name),
    )


def _launcher(kernel: KernelUse, tree: Tree) -> str:
    """Return what launched a kernel that no op did: the call, such as a graph's replay, if it is there."""
    launch = int(tree.launch[kernel.rows[0]]) if kernel.rows else NONE
    return "(no launch)" if launch == NONE else f"({tree.trace.name_of(launch)})"


def _unclassified(scope: ScopeFacts, total_us: float) -> str:
    unknown = [kernel for kernel in scope.kernels if not kernel.identity.classified]
    if not unknown:
        return "unclassified: 0% of GPU time"
    time = sum(kernel.gpu_time_us for kernel in unknown)
    names = plural(len({kernel.name for kernel in unknown}), "kernel name")
    return f"unclassified: {share(time, total_us)} of GPU time, {time_us(time)} ({names} that no rule knows)"
