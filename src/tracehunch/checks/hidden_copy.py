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

At stake is the time of the copies and, where the GPU waits for their launches, the time on the host of what
makes them. A copy is a warning if it takes 1 % of the trace's GPU time and 1 % of the time in which the GPU
works or waits for launches is at stake. On a CPU, where other processes stretch any op, it is one only if it
takes a tenth of its scope's time in the middle one of at least three calls, and a change of layout
(`reshape`, the input of a linear layer) never is: all attention between heads and tokens has it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import launched, on_gpu
from tracehunch.checks._ancestry import called_op, child_under, children, enclosing, path_inside
from tracehunch.checks._bias_copies import bias_copies
from tracehunch.checks._copies import amount, copies, per_call
from tracehunch.checks._copy_fixes import (
    CASTS,
    EXPLICIT,
    INDEX_OP,
    MULTIPLYING,
    ON_REQUEST,
    is_on_request,
    remedy,
)
from tracehunch.checks._launch_time import Waited
from tracehunch.checks._layouts import copies_inside_convolutions, layout_copies, unnamed_layout_copies
from tracehunch.checks._round_trips import round_trips, rows_of_casts
from tracehunch.checks._row_loops import row_loops
from tracehunch.checks._scopes import Placement, durations_us, place, place_ops
from tracehunch.checks._weight import is_material, is_noticeable, severity_of_elapsed
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Api, Tree
from tracehunch.tree.names import ENGINE_PREFIX, names_that
from tracehunch.verdict import CannotTell, Finding

ID: Final = "hidden-copy"
_LAYING_OUT: Final = frozenset({"aten::reshape", "aten::flatten", "aten::unflatten"})
_LAYOUT_OPS: Final = _LAYING_OUT | {"aten::linear"}
_HIDDEN, _ON_REQUEST, _AUTOGRAD, _AUTOCAST, _UNKNOWN = range(5)
_ELSEWHERE: Final = "produce the data where and as it is needed"


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find copies by the op that the program called, in the scope where it called it."""
    rows = _ours(facts)
    if not rows.size:
        return
    tree, where = facts.tree, place(facts) if on_gpu(facts) else place_ops(facts)
    op = called_op(tree, rows)
    kind = _kinds(facts, rows, op)
    op_name = np.where((op == NONE) | (kind == _AUTOGRAD), 0, tree.trace.name[op])
    for scope, key, chosen in where.groups(rows, kind * len(tree.trace.names) + op_name):
        yield from _OUTCOMES[key // len(tree.trace.names)](facts, where, scope, chosen)


def _ours(facts: Facts) -> Int64:
    """Leave out what other checks report: casts there and back, layouts, loops, a product's addend."""
    found = np.union1d(copies(facts), _picked(facts))
    if not found.size:
        return found
    layouts = (layout_copies(facts), copies_inside_convolutions(facts), unnamed_layout_copies(facts))
    loops = (loop.rows for loop in row_loops(facts))
    others = (rows_of_casts(round_trips(facts)), bias_copies(facts), *layouts, *loops)
    return np.setdiff1d(found, np.concatenate(others))


def _picked(facts: Facts) -> Int64:
    """Find the kernels of ``x[indices]``, which copy the elements that they pick."""
    rows = launched(facts, lambda use: use.kind == "kernel" and use.identity.algorithm == "index")
    called = called_op(facts.tree, rows)
    picks = names_that(facts.tree.trace, INDEX_OP.__eq__)
    found: Int64 = rows[(called != NONE) & picks[facts.tree.trace.name[called]]]
    return found


def _kinds(facts: Facts, rows: Int64, op: Int64) -> Int64:
    trace = facts.tree.trace
    on_request = names_that(trace, is_on_request)
    autograd = enclosing(facts.tree, rows, lambda name: name.startswith(ENGINE_PREFIX)) != NONE
    return np.select(
        [op == NONE, autograd, on_request[trace.name[op]], _by_autocast(facts, rows, op)],
        [_UNKNOWN, _AUTOGRAD, _ON_REQUEST, _AUTOCAST],
        default=_HIDDEN,
    )


def _by_autocast(facts: Facts, rows: Int64, op: Int64) -> NDArray[np.bool_]:
    """Tell casts of ``torch.autocast``, which casts what an op is given and then calls the same op again."""
    tree = facts.tree
    trace = tree.trace
    ops = tree.ops[tree.parent[tree.ops] != NONE]
    again = np.zeros(len(trace), dtype=bool)
    again[tree.parent[ops[trace.name[ops] == trace.name[tree.parent[ops]]]]] = True
    never_casts, casts = names_that(trace, MULTIPLYING.__contains__), names_that(trace, CASTS.__contains__)
    inner = child_under(tree, rows, op)
    cast = enclosing(tree, rows, CASTS.__contains__) != NONE
    found: NDArray[np.bool_] = cast & (again[op] | (never_casts[trace.name[op]] & casts[trace.name[inner]]))
    return found


def _hidden(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[Finding]:
    """Report copies inside one op that is about something else."""
    tree = facts.tree
    spent = where.per_call_us(scope, rows)
    if not is_noticeable(facts, scope, spent):
        return
    ops = called_op(tree, rows)
    longest = int(np.argmax(durations_us(tree.trace, rows)))
    row, op = int(rows[longest]), int(ops[longest])
    name = tree.trace.name_of(op)
    advice = remedy(name, path_inside(tree, row, op), children(tree, op))
    if not advice.sure and not is_material(facts, scope, spent):
        return
    waited = Waited.of(facts, scope, rows, _copying_op(tree, rows))
    stake = spent + waited.us
    sure = advice.sure and not _small(facts, name)
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity=severity_of_elapsed(facts, scope, rows, stake) if sure else "note",
        confidence="high" if advice.sure else "medium",
        time_at_stake_us=stake,
        summary=f"{name} hides {amount(facts, scope, rows)}{at_source(tree, row)}",
        cause=f"{name} {advice.cause}. At stake is the time of the copies{waited}.",
        fix=advice.fix,
        evidence=tree.trace.events(np.concatenate([rows, np.unique(ops)])),
        subject=name,
        per_call=per_call(scope, rows),
        idle=waited.pieces,
    )


def _copying_op(tree: Tree, rows: Int64) -> Int64:
    """Return for each copy the outermost op around it that does nothing else."""
    outer = enclosing(tree, rows, lambda name: name in EXPLICIT or name in _LAYING_OUT)
    return np.where(outer == NONE, tree.op[rows], outer).astype(np.int64)


def _small(facts: Facts, name: str) -> bool:
    """Tell whether a copy is one that any transformer has, on a CPU, where it is little beside the rest.

    The change of layout between heads and tokens: PyTorch's own attention module makes it as well.
    """
    return name in _LAYOUT_OPS and not on_gpu(facts)


def _asked_for(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[Finding]:
    """Report copies by an op that is there to copy."""
    tree = facts.tree
    spent = where.per_call_us(scope, rows)
    if not is_material(facts, scope, spent):
        return
    ops = np.unique(called_op(tree, rows))
    name = tree.trace.name_of(int(ops[0]))
    waited = Waited.of(facts, scope, rows, called_op(tree, rows))
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="high",
        time_at_stake_us=spent + waited.us,
        summary=f"{name}, called by the program, makes "
        f"{amount(facts, scope, rows)}{at_source(tree, int(rows[0]))}",
        cause=f"The program asks for these copies by name. At stake is their time{waited}, if they can be "
        "done without.",
        fix=f"Where the copies can be done without: {ON_REQUEST.get(name, _ELSEWHERE)}.",
        evidence=tree.trace.events(np.concatenate([rows, ops])),
        subject=name,
        per_call=per_call(scope, rows),
        idle=waited.pieces,
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
        summary=f"autograd makes {amount(facts, scope, rows)}, most in {', '.join(heaviest[:3])}",
        cause="The backward of casts, reshapes, slices and of attention lays out or casts gradients. At "
        "stake is the time of the copies.",
        fix="Copies of the backward go with the forward ops that cause them: fewer casts and reshapes of "
        "non-contiguous tensors in the forward, gradients of the layout that the backward op reads.",
        evidence=tree.trace.events(rows),
        subject="autograd",
        per_call=per_call(scope, rows),
    )


def _of_autocast(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[Finding]:
    """Report casts that autocast makes of an op's inputs."""
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
        summary=f"torch.autocast casts the inputs of {name}: {amount(facts, scope, rows)}"
        f"{at_source(tree, int(rows[0]))}",
        cause="autocast runs matrix products in 16 bits, norms, softmax and losses in float32, and casts "
        "what they are given. At stake is the time of the copies.",
        fix="Keep the whole forward inside one torch.autocast block, which casts each weight once; in "
        "inference cast the model instead, model.to(torch.bfloat16): norms and softmax compute in float32 "
        "inside all the same.",
        evidence=tree.trace.events(rows),
        subject=f"autocast in {name}",
        per_call=per_call(scope, rows),
    )


def _of_nobody(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[CannotTell]:
    """Say that the trace does not have the op of some copies, as in the replay of a CUDA graph."""
    stake = where.per_call_us(scope, rows)
    if not is_material(facts, scope, stake):
        return
    replayed = (facts.tree.api[facts.tree.launch[rows]] == Api.GRAPH).any()
    reason = f"{amount(facts, scope, rows)} launched outside any op: what made them is not in the trace"
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
