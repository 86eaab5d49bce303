"""for-loop-indexing: a Python loop works on a tensor row by row.

## What it means
A short pattern of ops with an indexing op in it (`select` for `x[i]`, `slice`, `index_put_`, or the rows of
an `unbind`) ran 16 times or more in a row on one thread, with operands of the same size, and each pass
launched its own tiny GPU activities. So looks `for i in range(len(x)): out[i] = 2 * x[i]`.

## Why it costs
Each op of each pass costs 5 to 20 us on the host, each GPU activity about a microsecond whatever its size.
One op over all rows costs the same as one pass.

## How to confirm
Look at the ops between the first and the last event given as evidence: the same names over and over. Record
with `with_stack=True` to get the line of the loop.

## How to fix
Do the work on all rows at once: broadcasting (`out[:] = 2 * x`), index tensors (`out[rows] = values`),
`torch.where`, `scatter`, `index_copy_`, `cumsum`; or `torch.vmap` for a function of one row.

## When it is fine
Where each pass needs the result of the one before it in a way that no scan op covers. Loops over modules,
over time steps with a matrix product in each, and over parameters are no loops over rows and not counted;
optimizers have their own finding, `unfused-optimizer`. Loops whose activities take more than 10 us each lose
little and are left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from tracehunch.checks._activities import on_gpu
from tracehunch.checks._launch_time import awaited, is_worth_a_warning, is_worth_a_word, length_us
from tracehunch.checks._row_loops import RowLoop, row_loops, unnamed_loops
from tracehunch.checks._scopes import Placement, durations_us, place
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.units import join, plural, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "for-loop-indexing"
_FIXED_US: Final = 1.0
"""What a GPU activity takes however little it does (0.7 to 1.5 us on an H200)."""


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find loops over rows by their pattern of ops, in the scope where they ran."""
    if not on_gpu(facts):
        return
    where = place(facts)
    by_row = {row: loop for loop in row_loops(facts) for row in loop.rows[:1].tolist()}
    ops = [tuple(sorted(loop.pattern)) for loop in by_row.values()]
    first = np.array(list(by_row), dtype=np.int64)
    number = {pattern: at for at, pattern in enumerate(sorted(set(ops)))}
    keys = np.array([number[one] for one in ops], dtype=np.int64)
    for scope, _, rows in where.groups(first, keys):
        yield from _finding(facts, scope, [by_row[row] for row in rows.tolist()])
    yield from _without_ops(facts, where)


def _finding(facts: Facts, scope: ScopeFacts, loops: Sequence[RowLoop]) -> Iterator[Finding]:
    calls = len(scope.scope.calls)
    rows = np.concatenate([loop.rows for loop in loops])
    again = np.concatenate([loop.rows[loop.of_one_pass :] for loop in loops])
    pieces = awaited(facts, np.concatenate([again, *(loop.reads for loop in loops)]))
    idle_us = length_us(facts, pieces)
    fixed_us = float(np.minimum(durations_us(facts.tree.trace, again), _FIXED_US).sum())
    stake = (idle_us + fixed_us) / calls
    if not is_worth_a_word(facts, scope, stake):
        return
    trace, names = facts.tree.trace, list(dict.fromkeys(loops[0].pattern))
    passes = max(loop.iterations for loop in loops)
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity="warning" if is_worth_a_warning(facts, scope, stake) else "note",
        confidence="high" if all(loop.same_sizes for loop in loops) else "medium",
        time_at_stake_us=stake,
        summary=f"{_loops(loops, calls)} of {passes} passes over {join(names)}: "
        f"{plural(round(rows.size / calls, 1), 'GPU activity', 'GPU activities')} a call of "
        f"{time_us(float(durations_us(trace, rows).mean()))} each{at_source(facts.tree, int(rows[0]))}",
        cause=f"Each pass calls {plural(len(loops[0].pattern), 'op')} from Python for one row. At stake is "
        f"what all passes but one cost: {time_us(idle_us / calls)} in which the GPU waited for their "
        f"launches, and {time_us(fixed_us / calls)} of its own, up to a microsecond an activity.",
        fix="Work on all rows at once: broadcasting in place of the loop (out[:] = 2 * x), index tensors "
        "(out[rows] = values), torch.where, scatter, index_copy_ or cumsum; torch.vmap for a function of one "
        "row.",
        evidence=trace.events(np.concatenate([rows, loops[0].ops[: len(loops[0].pattern)]])),
        subject=", ".join(names),
        per_call=round(rows.size / calls, 1),
        idle=tuple(pieces.tolist()),
    )


def _loops(loops: Sequence[RowLoop], calls: int) -> str:
    each = round(len(loops) / calls, 1)
    return "a Python loop" if each <= 1 else f"{each:g} Python loops a call"


def _without_ops(facts: Facts, where: Placement) -> Iterator[CannotTell]:
    """Say that a pattern of tiny activities whose ops were not recorded may be a loop over rows."""
    for scope, rows in where.by_scope(unnamed_loops(facts)):
        number = round(rows.size / len(scope.scope.calls), 1)
        reason = (
            f"{plural(number, 'tiny GPU activity', 'tiny GPU activities')} a call repeat a short pattern, "
            "but ops were not recorded: whether a loop over rows launched them is not in the trace"
        )
        yield CannotTell(ID, scope.scope.name, reason, "ProfilerActivity.CPU")
