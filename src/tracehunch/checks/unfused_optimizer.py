"""unfused-optimizer: an optimizer updates its parameters tensor by tensor.

## What it means
Inside `Optimizer.step`, ops such as `mul_`, `lerp_`, `addcmul_` and `addcdiv_` ran once for each parameter,
each with a kernel of its own, instead of a `foreach` implementation (the same ops for many tensors in one
kernel) or a `fused` one (the whole update of many tensors in one kernel). Or a loop of the program's own did
such arithmetic in place on 16 tensors or more, as an update or a moving average of weights by hand does.

## Why it costs
AdamW takes 8 kernels a parameter; a model has hundreds of parameters, and each launch costs 5 to 30 us on
the host, while the GPU needs a few microseconds for the kernel. Besides, the separate ops read and write
about 20 values for each value of a parameter where a fused update reads 4 and writes 3.

## How to confirm
Count the kernels in the step: per tensor, they grow with the number of parameters. `foreach` shows as
`aten::_foreach_...`, `fused` as `aten::_fused_...`.

## How to fix
`torch.optim.AdamW(params, fused=True)`; `Adam` and `SGD` have it as well. Where `fused` is not to be had,
`foreach=True`, which is the default on a GPU, unless `foreach=False` or `differentiable=True` was passed or a
parameter is not a plain tensor on the GPU. For an optimizer of your own, or a moving average of weights, use
the `torch._foreach_` functions on lists of tensors, or `torch.compile` it.

## When it is fine
`foreach` needs memory for its intermediate results, as much as all parameters together; on a full GPU the
loop can be right, though `fused` needs none. A `foreach` step of Adam is a note at most: `fused` would save
GPU time. So is a loop of the program's own over tensors of one size: it may be one tensor that changes again
and again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from tracehunch.checks._activities import on_cpu_alone, on_gpu
from tracehunch.checks._launch_time import awaited, is_worth_a_warning, is_worth_a_word, length_us
from tracehunch.checks._optimizers import Steps, optimizer_steps
from tracehunch.checks._scopes import durations_us, place
from tracehunch.checks._update_loops import UpdateLoop, update_loops
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.units import join, plural, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "unfused-optimizer"
_FUSED: Final = frozenset({"Adam", "AdamW", "SGD"})
_FOREACH: Final = frozenset(
    {"ASGD", "Adadelta", "Adafactor", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop"}
)
"""Classes of ``torch.optim`` with ``fused=`` on a GPU; those with ``foreach=`` only."""
_ADAM: Final = frozenset({"Adam", "AdamW"})
_MANY: Final = 32
_TENSORS: Final = 4
_STAYS: Final = {True: 10, False: 40}
"""Launches' worth of host time that a fused step takes, and a foreach step.

On an H200's host the 3 launches and the Python code of a fused AdamW took 0.24 to 0.5 ms, the foreach RMSprop
1.1 ms, where a launch of the loop took 15 to 27 us."""
_FIXED_US: Final = 1.0
"""What a kernel takes however little it does."""
_LESS_TRAFFIC: Final = 0.54
"""What fused Adam saves of the rest: its traffic is 7 of 18 to 20 values. Measured on an H200 with 12 tensors
of 16 million values: 0.54 of the loop's GPU time and 0.58 of that of the foreach implementation."""


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find optimizers that launch a kernel for each tensor, and steps of Adam that could be fused."""
    if on_cpu_alone(facts):
        return
    for steps in optimizer_steps(facts):
        by_tensor = steps.only(steps.one_tensor)
        if 2 * by_tensor.rows.size < steps.rows.size:
            yield from _foreach(facts, steps)
        elif on_gpu(facts):
            yield from _by_tensor(facts, by_tensor)
        else:
            yield from _without_gpu(facts, by_tensor)
    yield from _of_own_loops(facts)


def _by_tensor(facts: Facts, steps: Steps) -> Iterator[Finding]:
    """Report steps whose kernels each work on one tensor."""
    for scope, mine in _by_scope(facts, steps):
        count = _Count.of(facts, mine)
        saving = _saving(facts, mine)
        stake = saving.us / len(scope.scope.calls)
        if not count.by_tensor or not is_worth_a_word(facts, scope, stake):
            continue
        yield Finding(
            id=ID,
            scope=scope.scope.name,
            severity="warning"
            if is_worth_a_warning(facts, scope, stake) and not steps.multiplies
            else "note",
            confidence="high" if steps.name in _FUSED | _FOREACH else "medium",
            time_at_stake_us=stake,
            summary=f"{steps.name} updates its parameters one by one: {count}"
            f"{at_source(facts.tree, int(mine.rows[0]))}",
            cause=f"Each op of the update is launched for each tensor. At stake a step: {saving.how}",
            fix=_fix(steps.name),
            evidence=facts.tree.trace.events(mine.rows),
            subject=steps.name,
            per_call=round(mine.rows.size / len(scope.scope.calls), 1),
            idle=saving.idle,
        )


def _foreach(facts: Facts, steps: Steps) -> Iterator[Finding]:
    """Note what a fused step of Adam would save where a foreach one runs."""
    names = {facts.tree.trace.name_of(int(op)) for op in np.unique(steps.op)}
    if (
        steps.name not in _ADAM
        or not on_gpu(facts)
        or any(name.startswith("aten::_fused_") for name in names)
    ):
        return
    for scope, mine in _by_scope(facts, steps):
        saving = _saving(facts, mine)
        stake = saving.us / len(scope.scope.calls)
        if not is_worth_a_warning(facts, scope, stake):
            continue
        each = plural(round(mine.rows.size / np.unique(mine.step).size, 1), "kernel")
        yield Finding(
            id=ID,
            scope=scope.scope.name,
            severity="note",
            confidence="medium",
            time_at_stake_us=stake,
            summary=f"{steps.name} runs its foreach implementation, {each} a step, not the fused one"
            f"{at_source(facts.tree, int(mine.rows[0]))}",
            cause=f"Each foreach op reads and writes all parameters' values. At stake a step: {saving.how}",
            fix=_fix(steps.name),
            evidence=facts.tree.trace.events(mine.rows),
            subject=steps.name,
            per_call=round(mine.rows.size / len(scope.scope.calls), 1),
            idle=saving.idle,
        )


def _without_gpu(facts: Facts, steps: Steps) -> Iterator[CannotTell]:
    """Say that launches tensor by tensor have no GPU activities that tell what they cost."""
    count = _Count.of(facts, steps)
    if count.by_tensor:
        reason = (
            f"{steps.name} updates its parameters one by one ({count}), but GPU activities were not "
            "recorded: what that costs is not in the trace"
        )
        yield CannotTell(ID, "whole", reason, "ProfilerActivity.CUDA")


def _of_own_loops(facts: Facts) -> Iterator[Finding]:
    """Report loops of the program's own that update tensor by tensor."""
    by_row = {int(loop.rows[0]): loop for loop in update_loops(facts)}
    patterns = sorted({loop.pattern for loop in by_row.values()})
    keys = [patterns.index(loop.pattern) for loop in by_row.values()]
    for scope, _, rows in place(facts).groups(list(by_row), keys):
        yield from _own_loop(facts, scope, [by_row[row] for row in rows.tolist()])


def _own_loop(facts: Facts, scope: ScopeFacts, loops: Sequence[UpdateLoop]) -> Iterator[Finding]:
    calls, first, passes = len(scope.scope.calls), loops[0], max(loop.iterations for loop in loops)
    sure = all(loop.sizes_differ for loop in loops)
    again = np.concatenate([loop.rows[loop.of_one_pass :] for loop in loops])
    pieces = awaited(facts, again)
    fixed_us = float(np.minimum(durations_us(facts.tree.trace, again), _FIXED_US).sum())
    stake = (length_us(facts, pieces) + fixed_us) / calls
    if not is_worth_a_word(facts, scope, stake) or not (sure or first.of_one_pass > 1):
        return
    rows = np.concatenate([loop.rows for loop in loops])
    names = join(list(dict.fromkeys(first.pattern)))
    number = round(rows.size / calls, 1)
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity="warning" if sure and is_worth_a_warning(facts, scope, stake) else "note",
        confidence="high" if sure else "low",
        time_at_stake_us=stake,
        summary=f"a Python loop updates {plural(passes, 'tensor')} one by one "
        f"with {names}: {plural(number, 'kernel')} a call{at_source(facts.tree, int(rows[0]))}",
        cause="Each op of the update is launched for each tensor. At stake is what all passes but one cost: "
        f"{time_us(length_us(facts, pieces) / calls)} in which the GPU waits for their launches, and up to a "
        "microsecond of its own each.",
        fix="torch._foreach_ functions work on lists of tensors, as torch._foreach_add_(params, grads, "
        "alpha=-lr) or torch._foreach_lerp_(averages, params, 0.01); or torch.compile the loop.",
        evidence=facts.tree.trace.events(rows),
        subject=", ".join(dict.fromkeys(first.pattern)),
        per_call=number,
        idle=tuple(pieces.tolist()),
    )


def _by_scope(facts: Facts, steps: Steps) -> Iterator[tuple[ScopeFacts, Steps]]:
    for scope, _, at in place(facts).positions(steps.rows):
        yield scope, steps.only(at)


@dataclass(frozen=True, slots=True)
class _Count:
    """Kernels and tensors of a step."""

    kernels: float
    tensors: float

    @classmethod
    def of(cls, facts: Facts, steps: Steps) -> Self:
        """Count them: most ops of the update run as often as there are tensors."""
        n_steps = np.unique(steps.step).size
        _, each = np.unique(facts.tree.trace.name[steps.op], return_counts=True)
        times, how_often = np.unique(each, return_counts=True)
        tensors = float(times[np.argmax(how_often)]) / n_steps if each.size else 0.0
        return cls(round(steps.rows.size / max(n_steps, 1), 1), round(tensors, 1))

    @property
    def by_tensor(self) -> bool:
        """Whether there are enough of both for a loop over parameters."""
        return self.kernels >= _MANY and self.tensors >= _TENSORS

    def __str__(self) -> str:
        return f"{plural(self.kernels, 'kernel')} a step for about {plural(round(self.tensors), 'tensor')}"


@dataclass(frozen=True, slots=True)
class _Saving:
    us: float  # over all calls
    how: str
    idle: tuple[int, ...]  # pieces of idle time


def _saving(facts: Facts, steps: Steps) -> _Saving:
    """Estimate what a fused step saves; for optimizers without one what a foreach step does."""
    _, first, number = np.unique(steps.step, return_index=True, return_counts=True)
    gone = max(0.0, 1 - _STAYS[steps.name in _FUSED] / float(number.mean()))
    pieces = awaited(facts, np.delete(steps.rows, first))
    idle_us = length_us(facts, pieces) * gone
    lengths = durations_us(facts.tree.trace, steps.rows)
    fixed = np.minimum(lengths, _FIXED_US)
    is_adam = steps.name in _ADAM
    gpu_us = float(fixed.sum()) * gone + float((lengths - fixed).sum()) * (_LESS_TRAFFIC if is_adam else 0.0)
    why = (
        "since for each value of a parameter a fused update reads and writes 7, the separate ops about 20"
        if is_adam
        else "the fixed costs of so many kernels"
    )
    return _Saving(
        idle_us + gpu_us,
        f"{time_us(idle_us / first.size)} in which the GPU waits for launches that need not be, and "
        f"{time_us(gpu_us / first.size)} of GPU time, {why}.",
        tuple(pieces.tolist()),
    )


def _fix(name: str) -> str:
    if name in _FUSED:
        return (
            f"torch.optim.{name}(..., fused=True): one kernel updates many tensors. Where the fused form is "
            "not to be had, foreach=True, the default on a GPU."
        )
    if name in _FOREACH:
        return (
            f"torch.optim.{name}(..., foreach=True), the default for parameters that are plain GPU tensors."
        )
    return (
        "foreach=True or fused=True, if the optimizer has them; in an optimizer of your own use "
        "torch._foreach_ functions on lists of tensors, or torch.compile its step."
    )
