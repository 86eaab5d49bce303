"""bias-copy: a product in compiled code begins by copying what it adds into its output.

## What it means
torch.compile turned a product and an addition into one call, `addmm(bias, x, w, out=buffer)`. The library
adds to what is already in the output, so the bias (or the matrix that is added) is first copied there: a
`Memcpy DtoD`, or a copy kernel, inside `aten::addmm` before the GEMM. The program wrote no copy.

## Why it costs
The copy reads what is added and writes all of the output, which the GEMM then reads once more. It saves a
kernel for the addition, so that a small product gains and a memory-bound one may lose.

## How to confirm
Open `aten::addmm` below `## Call CompiledFxGraph`: a copy, then the matrix kernel, whose name may have `badd`
in it. Record with `record_shapes=True` to see the sizes of what is added.

## How to fix
A one-dimensional bias goes through `torch.nn.functional.linear`, for which most libraries have a GEMM that
adds it itself. For a matrix, `mode="max-autotune-no-cudagraphs"` lets Inductor generate a GEMM that adds it
as it writes. Where what is added is not needed afterwards, `added.addmm_(x, w)` adds into it without a copy.

## When it is fine
Where the copy is small beside the GEMM: the merged call still saves a kernel.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import uses
from tracehunch.checks._ancestry import enclosing
from tracehunch.checks._bias_copies import addend, bias_copies, is_copy
from tracehunch.checks._copy_fixes import ADDING
from tracehunch.checks._matrix import matrix_products
from tracehunch.checks._scopes import Placement, by_call_us, durations_us, place, total_us
from tracehunch.checks._weight import is_material, is_noticeable, on_average, severity
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Cat, Int64
from tracehunch.tree import NONE, Api
from tracehunch.tree.names import names_that
from tracehunch.units import count, plural, share, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "bias-copy"
_TUNED: Final = (
    'torch.compile(mode="max-autotune-no-cudagraphs") lets Inductor generate a GEMM that adds as it writes'
)


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find copies before products in compiled code, by scope."""
    where = place(facts)
    for scope, rows in where.by_scope(bias_copies(facts)):
        yield from _finding(facts, where, scope, rows)
    for scope, rows in where.by_scope(_before_replayed_products(facts)):
        spent = where.per_call_us(scope, rows)
        if is_material(facts, scope, spent):
            reason = (
                f"copies right before matrix products in the replay of a CUDA graph ({time_us(spent)} a "
                "call) may be of what the products add; the ops that made them are not in the trace"
            )
            yield CannotTell(ID, scope.scope.name, reason, "a run without the CUDA graph")


def _finding(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterable[Finding]:
    tree = facts.tree
    stake = where.per_call_us(scope, rows)
    if not is_noticeable(facts, scope, stake):
        return
    ops = enclosing(tree, rows, ADDING.__contains__)
    longest = int(np.argmax(durations_us(tree.trace, rows)))
    name, shape = tree.trace.name_of(int(ops[longest])), addend(tree.trace, int(ops[longest]))
    times = by_call_us(facts, scope, rows)
    number = round(rows.size / len(scope.scope.calls), 1)
    what = "the bias" if len(shape) == 1 else "what it adds"
    sized = f" ({' x '.join(count(size) for size in shape)})" if shape else ""
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity=severity(facts, scope, rows),
        confidence="high",
        time_at_stake_us=stake,
        summary=f"{name} copies {what}{sized} into its output before the product: "
        f"{plural(number, 'copy', 'copies')} a call, {time_us(stake)}{on_average(times)} "
        f"({share(float(times.sum()), total_us(facts, scope))} of the scope's GPU time)"
        f"{at_source(tree, int(rows[longest]))}",
        cause="Compiled code calls the library with out=, and the library adds to what is already there. At "
        "stake is the time of the copies.",
        fix=_fix(shape),
        evidence=tree.trace.events(np.concatenate([rows, np.unique(ops)])),
        subject=name,
        per_call=number,
    )


def _fix(shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return (
            "Sizes that are multiples of 8 and contiguous operands let the library's GEMM add the bias "
            f"itself; {_TUNED}."
        )
    return (
        f"{_TUNED}; where what is added is not needed afterwards, added.addmm_(x, w) needs no copy; a bias "
        "of one dimension belongs in torch.nn.functional.linear."
    )


def _before_replayed_products(facts: Facts) -> Int64:
    """Find copies in replays of CUDA graphs that a matrix product follows on their stream."""
    tree = facts.tree
    trace = tree.trace
    gpu = trace.gpu.row.astype(np.int64)
    kept = trace.cat[gpu] != Cat.MEMSET
    rows, device, stream = gpu[kept], trace.gpu.device[kept], trace.gpu.stream[kept]
    order = np.lexsort((trace.start_ns[rows], stream, device))
    rows, lane = rows[order], np.stack([device[order].astype(np.int64), stream[order]])
    copies = {use.name for use in uses(facts) if is_copy(use)}
    is_product = np.isin(rows, matrix_products(facts, rows))
    follows = np.zeros(rows.size, dtype=bool)
    follows[:-1] = is_product[1:] & (lane[:, 1:] == lane[:, :-1]).all(axis=0)
    wanted = follows & names_that(trace, copies.__contains__)[trace.name[rows]] & _replayed(facts, rows)
    found: Int64 = rows[wanted]
    return found


def _replayed(facts: Facts, rows: Int64) -> NDArray[np.bool_]:
    tree = facts.tree
    launch = tree.launch[rows].astype(np.int64)
    replayed: NDArray[np.bool_] = (launch != NONE) & (tree.op[rows] == NONE)
    replayed &= tree.api[launch] == Api.GRAPH
    return replayed
