"""recompile: torch.compile compiled code again that it had compiled before.

## What it means
Before each call Dynamo checks the guards of the code it has compiled: shapes, types, Python values, objects.
Where none fits, it compiles a new version, in the middle of the program. The trace shows it as a `dynamo`
phase with a `compile_id` such as `0/5` (function 0, for the sixth time), and afterwards as another
`Torch-Compiled Region` and another hash in `## Call CompiledFxGraph`. The same hash in every call means that
compiled code was found. The first compilation of a function is no finding here.

## Why it costs
A compilation takes a second or more, in which the thread launches nothing, and new kernels are timed
against each other on the GPU before the first run (autotuning: hundreds of launches that are not the
model's). After 8 versions of one function (`recompile_limit`) it runs without compilation for good.

## How to confirm
`TORCH_LOGS=recompiles python ...` prints for each compilation the guard that failed. Record with
`record_shapes=True`: the finding then says which dimension differs.

## How to fix
A dimension that varies: `torch._dynamo.mark_dynamic(x, dim)` before the first call, or
`torch.compile(dynamic=True)`; or fewer sizes, by padding or bucketing. A Python number that varies: pass it
as a tensor. A function defined inside the loop: compile it once, outside.

## When it is fine
In warm-up: a second version of a function in the first call is a note, as Dynamo makes a size dynamic when
it first sees it change. With a handful of sizes, each compiled once.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from tracehunch.checks._recompilations import Compiled, compiled_by_scope, idle_pieces, saved_us, stake_words
from tracehunch.checks._recompiled_shapes import Comparison, compared
from tracehunch.checks._scopes import place, place_rows
from tracehunch.checks._words import at_source
from tracehunch.facts.compiled.compilations import region_id
from tracehunch.facts.compiled.rows import annotated, is_region
from tracehunch.facts.compiler import is_autotuning
from tracehunch.facts.model import Facts
from tracehunch.tree import NONE
from tracehunch.units import count, join, plural, share, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "recompile"
_SHOWN: Final = 4
_DISTINCT: Final = 3
"""Calls that each ran another version before it looks like compiling in each of them."""


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Report repeated compilations by scope."""
    found = compiled_by_scope(facts)
    for compiled in found:
        if compiled.again:
            yield _finding(facts, compiled)
    if not found:
        yield from _untold(facts)


def _finding(facts: Facts, compiled: Compiled) -> Finding:
    tree, scope = facts.tree, compiled.scope
    n_calls = len(scope.scope.calls)
    spans = [call.end_ns - call.start_ns for call in scope.scope.calls]
    host_us = float(compiled.host_us.mean()) * compiled.again_part
    labels = [one.label for one in compiled.again if one.label]
    shown = [*labels[:_SHOWN], *(["..."] if len(labels) > _SHOWN else [])]
    rows = np.array([one.row for one in compiled.again], dtype=np.int64)
    comparisons = _comparisons(facts, compiled)
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note" if compiled.only_once else "warning",
        confidence="high",
        time_at_stake_us=saved_us(facts, compiled) * compiled.again_part,
        summary=f"torch.compile compiled code again in {count(compiled.calls_again.size)} of "
        f"{plural(n_calls, 'call')}, for {time_us(host_us)} of host time a call "
        f"({share(host_us, float(np.mean(spans)) / 1e3)})"
        f"{': ' + ', '.join(shown) if shown else ''}{at_source(tree, int(rows[0]))}",
        cause=f"{_what_changed(facts, compiled, comparisons)}{_trial_runs(facts, compiled)} At stake is "
        f"{stake_words(facts)}, averaged over the calls.",
        fix=_fix(compiled, comparisons),
        evidence=tree.trace.events(rows),
        subject="torch.compile",
        per_call=round(len(compiled.again) / n_calls, 1),
        idle=idle_pieces(facts, compiled),
    )


def _comparisons(facts: Facts, compiled: Compiled) -> list[Comparison]:
    codes: dict[int, list[int]] = {}
    for one in compiled.again:
        if one.code != NONE:
            codes.setdefault(one.code, []).append(one.row)
    return [compared(facts.tree, code, rows) for code, rows in codes.items()]


def _what_changed(facts: Facts, compiled: Compiled, comparisons: list[Comparison]) -> str:
    changes = [str(one.change) for one in comparisons if one.change is not None]
    if changes:
        return f"What differs between the versions is {join(changes[:_SHOWN])}."
    if _is_new_code(compiled):
        return "Each time it was new code to Dynamo, as a function that is made anew in every call is."
    if not facts.tree.trace.header.recorded.shapes:
        return "Which shape or value changed, the trace does not show (record_shapes=True shows shapes)."
    if any(one.with_sizes > 1 for one in comparisons):
        return (
            "The recorded sizes do not differ between the versions: it is rather a Python value, an object "
            "or a mode (grad, autocast, training) that a guard is on."
        )
    if any(one.ran > 1 for one in comparisons):
        return "Which shape or value changed, the trace does not show: no sizes were recorded in the runs."
    return "Only one version ran in the recorded window, so that what changed is not in the trace."


def _is_new_code(compiled: Compiled) -> bool:
    return all(one.version == 0 for one in compiled.again)


def _trial_runs(facts: Facts, compiled: Compiled) -> str:
    """Tell the compiler's GPU activities from the program's."""
    where, rows = place(facts), facts.tree.trace.gpu.row.astype(np.int64)
    number = facts.scopes.index(compiled.scope)
    mine = rows[where.scope[rows] == number]
    tuned = int(np.count_nonzero(is_autotuning(facts.tree, mine)))
    if not tuned:
        return ""
    calls = len(compiled.scope.scope.calls)
    return (
        f" {count(round(tuned / calls))} of {count(round(mine.size / calls))} GPU activities a call are the "
        "compiler's trial runs (autotuning), not the program's."
    )


def _fix(compiled: Compiled, comparisons: list[Comparison]) -> str:
    log = "TORCH_LOGS=recompiles prints the guard that failed."
    if any(one.change is not None for one in comparisons):
        return (
            "torch._dynamo.mark_dynamic(x, dim) on the inputs that vary, before the first call, or "
            f"torch.compile(dynamic=True); or pad to a few sizes, each compiled in warm-up. {log}"
        )
    if _is_new_code(compiled):
        return f"Define and compile the function once, outside the loop. {log}"
    return (
        f"{log} If the guard is of a size: torch._dynamo.mark_dynamic(x, dim) or "
        "torch.compile(dynamic=True); a Python number: pass it as a tensor; an attribute of a module: keep "
        "it constant."
    )


def _untold(facts: Facts) -> Iterable[CannotTell]:
    """Say so where every call ran another version, but no compilation was recorded."""
    tree = facts.tree
    regions = annotated(tree, is_region)
    for scope, rows in place_rows(facts, regions).by_scope(regions):
        ids = [region_id(tree.trace.name_of(int(row))) for row in rows]
        for code in dict.fromkeys(number for number, _ in ids if number != NONE):
            versions = [version for number, version in ids if number == code]
            if len(versions) >= _DISTINCT and len(set(versions)) == len(versions):
                shown = ", ".join(f"{code}/{version}" for version in versions[:_SHOWN])
                reason = (
                    f"each call ran another version of compiled code ({shown}), but no compilation was "
                    "recorded: whether each was compiled then or before, the file does not say"
                )
                yield CannotTell(
                    ID, scope.scope.name, reason, "torch 2.6 or later, which annotates compilations"
                )
