"""hidden-copy: a copy that the program did not write.

## What it means
A GPU copy (`Memcpy DtoD`, or a kernel that only copies, casts or lays out data) was launched from inside an
op whose purpose is something else: `masked_fill` clones its input before it fills, `reshape` of a
transposed tensor copies it, `softmax` with another `dtype=` casts its input. The finding names the op that
the program called. Copies that the program asked for by name (`clone`, `contiguous`, `to`, `cat`, `copy_`),
the casts of `torch.autocast` and those of autograd's engine are notes with their cost.

## Why it costs
A copy reads and writes the whole tensor once more and computes nothing. A gigabyte of traffic takes 0.2 to
0.6 ms on a data-centre GPU, and the extra tensor takes memory as well.

## How to confirm
Open the trace at the events given as evidence and read the ops above the copy, from the inside out. Record
with `with_stack=True` to get the line of code.

## How to fix
As the finding says for its op: the in-place form (`masked_fill_`), a layout that needs no copy, the input
in the dtype the op works in, or a fused op in place of the chain.

## When it is fine
When the original is still needed: an in-place op would destroy it. When the copy makes what follows faster
by more than it costs, as a layout change before many reads can. Layout changes inside convolutions are not
counted here, and copies inside the math fallback of attention belong to `sdpa-math-fallback`. On a CPU
`addmm`, and with it every linear layer, begins its result as a copy of the bias: that is how it adds one,
nothing in the program avoids it, and it is not counted.

A copy is a warning from 1 % of the trace's GPU time. On a CPU, where other processes stretch any op, it is
one only if it takes a tenth of its scope's time in the middle one of at least three calls, and a change of
layout (`reshape`, the input of a linear layer) never is: all attention between heads and tokens has it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import launched, leaf_ops, on_cpu_alone, on_gpu
from tracehunch.checks._ancestry import called_op, child_under, children, enclosing, path_inside
from tracehunch.checks._copy_fixes import (
    ADDING,
    CASTS,
    COPY_OP,
    MULTIPLYING,
    ON_REQUEST,
    is_on_request,
    remedy,
)
from tracehunch.checks._scopes import Placement, by_call_us, durations_us, place, place_ops, total_us
from tracehunch.checks._sdpa_math import MATH_OP
from tracehunch.checks._weight import is_material, is_noticeable, on_average, severity
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, KernelUse, ScopeFacts
from tracehunch.kernels import is_copy_kernel
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Api
from tracehunch.tree.names import ENGINE_PREFIX, names_that
from tracehunch.units import plural, share, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "hidden-copy"
_CPU_COPIES: Final = frozenset({COPY_OP, "aten::cat"})
_TUNING: Final = ("CachingAutotuner", "(dynamo_timed)")  # the compiler's own trial runs
_LAYOUT_OPS: Final = frozenset({"aten::linear", "aten::reshape", "aten::flatten", "aten::unflatten"})
_READING: Final = "aten::_local_scalar_dense"  # to the host, though some drivers copy on the device first
_HIDDEN, _ON_REQUEST, _AUTOGRAD, _AUTOCAST, _UNKNOWN = range(5)


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find copies by the op that the program called, in the scope where it called it."""
    rows = _copies(facts)
    if not rows.size:
        return
    tree, where = facts.tree, place(facts) if on_gpu(facts) else place_ops(facts)
    op = called_op(tree, rows)
    kind = _kinds(facts, rows, op)
    op_name = np.where((op == NONE) | (kind == _AUTOGRAD), 0, tree.trace.name[op])
    for scope, key, chosen in where.groups(rows, kind * len(tree.trace.names) + op_name):
        yield from _OUTCOMES[key // len(tree.trace.names)](facts, where, scope, chosen)


def _copies(facts: Facts) -> Int64:
    """Find what copies within one device, but for the math fallback and the compiler's trial runs."""
    if on_gpu(facts):
        rows = launched(facts, _is_copy)
    elif on_cpu_alone(facts):
        rows = leaf_ops(facts, _CPU_COPIES.__contains__)
        rows = rows[~_no_fault_on_cpu(facts, rows)]
    else:
        return np.empty(0, dtype=np.int64)
    ours: Int64 = rows[enclosing(facts.tree, rows, _belongs_elsewhere) == NONE]
    return ours


def _no_fault_on_cpu(facts: Facts, rows: Int64) -> NDArray[np.bool_]:
    """Tell copies of an addend, with which a CPU's addmm begins its result, and casts of single numbers."""
    tree = facts.tree
    trace = tree.trace
    around = np.where(tree.parent[rows] == NONE, NONE, tree.op[tree.parent[rows]])
    name = trace.name[around]
    addend = (around != NONE) & names_that(trace, ADDING.__contains__)[name]
    cast = (around != NONE) & names_that(trace, CASTS.__contains__)[name]
    of_number = [
        bool(inside) and _is_number(facts, row) for row, inside in zip(rows.tolist(), cast, strict=True)
    ]
    found: NDArray[np.bool_] = addend | np.array(of_number, dtype=bool)
    return found


def _is_number(facts: Facts, row: int) -> bool:
    """Tell whether an op was recorded to write a single number, as those in ``x * 0.5`` are cast."""
    dims = facts.tree.trace.args_of(row).get("Input Dims")
    return isinstance(dims, list) and dims[:1] == [[]]


def _belongs_elsewhere(name: str) -> bool:
    return name in {MATH_OP, _READING} or any(word in name for word in _TUNING)


def _is_copy(use: KernelUse) -> bool:
    if use.kind == "memcpy":
        return ("direction", "device to device") in use.identity.fields
    return (
        use.kind == "kernel" and is_copy_kernel(use.identity) and use.identity.algorithm != "layout-transform"
    )


def _kinds(facts: Facts, rows: Int64, op: Int64) -> Int64:
    trace = facts.tree.trace
    on_request = names_that(trace, is_on_request)
    never_casts, casts = names_that(trace, MULTIPLYING.__contains__), names_that(trace, CASTS.__contains__)
    inner = child_under(facts.tree, rows, op)
    autocast = never_casts[trace.name[op]] & casts[trace.name[inner]]
    autograd = enclosing(facts.tree, rows, lambda name: name.startswith(ENGINE_PREFIX)) != NONE
    return np.select(
        [op == NONE, autograd, on_request[trace.name[op]], autocast],
        [_UNKNOWN, _AUTOGRAD, _ON_REQUEST, _AUTOCAST],
        default=_HIDDEN,
    )


def _hidden(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[Finding]:
    """Report copies inside one op that is about something else."""
    tree = facts.tree
    stake = where.per_call_us(scope, rows)
    if not is_noticeable(facts, scope, stake):
        return
    ops = called_op(tree, rows)
    longest = int(np.argmax(durations_us(tree.trace, rows)))
    row, op = int(rows[longest]), int(ops[longest])
    name = tree.trace.name_of(op)
    advice = remedy(name, path_inside(tree, row, op), children(tree, op))
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity=severity(facts, scope, rows) if advice.sure and not _small(facts, name) else "note",
        confidence="high" if advice.sure else "medium",
        time_at_stake_us=stake,
        summary=f"{name} hides {_amount(facts, scope, rows)}{at_source(tree, row)}",
        cause=f"{name} {advice.cause}. At stake is the time of the copies.",
        fix=advice.fix,
        evidence=tree.trace.events(np.concatenate([rows, np.unique(ops)])),
        subject=name,
        per_call=_per_call(scope, rows),
    )


def _small(facts: Facts, name: str) -> bool:
    """Tell whether a copy is one that any transformer has, on a CPU, where it is little beside the rest.

    The change of layout between heads and tokens: PyTorch's own attention module makes it as well.
    """
    return name in _LAYOUT_OPS and not on_gpu(facts)


def _asked_for(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[Finding]:
    """Report copies by an op that is there to copy."""
    tree = facts.tree
    ops = np.unique(called_op(tree, rows))
    name = tree.trace.name_of(int(ops[0]))
    stake = where.per_call_us(scope, rows)
    if not is_material(facts, scope, stake):
        return
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="high",
        time_at_stake_us=stake,
        summary=f"{name}, called by the program, makes "
        f"{_amount(facts, scope, rows)}{at_source(tree, int(rows[0]))}",
        cause="The program asks for these copies by name. At stake is their time, if they can be done "
        "without.",
        fix=f"If they can: {ON_REQUEST.get(name, 'produce the data where and as it is needed')}.",
        evidence=tree.trace.events(np.concatenate([rows, ops])),
        subject=name,
        per_call=_per_call(scope, rows),
    )


def _of_autograd(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[Finding]:
    """Report copies that autograd's engine makes."""
    tree = facts.tree
    stake = where.per_call_us(scope, rows)
    if not is_material(facts, scope, stake):
        return
    nodes = enclosing(tree, rows, lambda name: name.startswith(ENGINE_PREFIX))
    names = [tree.trace.name_of(int(row)).removeprefix(f"{ENGINE_PREFIX}: ") for row in nodes]
    heaviest = sorted(set(names), key=lambda name: -where.per_call_us(scope, rows[np.array(names) == name]))
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="high",
        time_at_stake_us=stake,
        summary=f"autograd makes {_amount(facts, scope, rows)}, most in {', '.join(heaviest[:3])}",
        cause="The backward of casts, reshapes, slices and of attention lays out or casts gradients. At "
        "stake is the time of the copies.",
        fix="They go with the forward ops that cause them: fewer casts and reshapes of non-contiguous "
        "tensors in the forward, gradients of the layout the backward op reads.",
        evidence=tree.trace.events(rows),
        subject="autograd",
        per_call=_per_call(scope, rows),
    )


def _of_autocast(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[Finding]:
    """Report casts inside ops that never cast by themselves."""
    tree = facts.tree
    stake = where.per_call_us(scope, rows)
    if not is_material(facts, scope, stake):
        return
    name = tree.trace.name_of(int(called_op(tree, rows[:1])[0]))
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="medium",
        time_at_stake_us=stake,
        summary=f"torch.autocast casts the inputs of {name}: {_amount(facts, scope, rows)}"
        f"{at_source(tree, int(rows[0]))}",
        cause=f"{name} has no cast of its own, so those inside it are autocast's, of weights and activations "
        "in float32. At stake is the time of the copies.",
        fix="Keep the whole forward inside one torch.autocast block, which casts each weight once; in "
        "inference cast the model instead: model.to(torch.bfloat16).",
        evidence=tree.trace.events(rows),
        subject=f"autocast in {name}",
        per_call=_per_call(scope, rows),
    )


def _of_nobody(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[CannotTell]:
    """Say that the trace does not have the op of some copies, as in the replay of a CUDA graph."""
    stake = where.per_call_us(scope, rows)
    if not is_material(facts, scope, stake):
        return
    replayed = (facts.tree.api[facts.tree.launch[rows]] == Api.GRAPH).any()
    reason = f"{_amount(facts, scope, rows)} launched outside any op: what made them is not in the trace"
    yield CannotTell(ID, scope.scope.name, reason, "a run without the CUDA graph" if replayed else "")


_OUTCOMES: Final[
    Mapping[int, Callable[[Facts, Placement, ScopeFacts, Int64], Iterator[Finding | CannotTell]]]
] = {
    _HIDDEN: _hidden,
    _ON_REQUEST: _asked_for,
    _AUTOGRAD: _of_autograd,
    _AUTOCAST: _of_autocast,
    _UNKNOWN: _of_nobody,
}


def _amount(facts: Facts, scope: ScopeFacts, rows: Int64) -> str:
    """Write ``1 copy a call, 127.6 us (12% of the scope's GPU time)``."""
    times = by_call_us(facts, scope, rows)
    what = "GPU" if on_gpu(facts) else "CPU"
    of_all = share(float(times.sum()), total_us(facts, scope))
    number = plural(_per_call(scope, rows), "copy", "copies")
    return (
        f"{number} a call, {time_us(float(times.mean()))}{on_average(times)} "
        f"({of_all} of the scope's {what} time)"
    )


def _per_call(scope: ScopeFacts, rows: Int64) -> float:
    return round(len(rows) / len(scope.scope.calls), 1)
