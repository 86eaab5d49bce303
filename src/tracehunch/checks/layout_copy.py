"""layout-copy: a tensor copied into another memory layout.

## What it means
A GPU copy changed only the order in which a tensor lies in memory. There are two kinds. A convolution
library converts its inputs and results, because its kernels want another layout (NHWC, `channels_last`)
than the tensors have (NCHW); cuDNN's `nchwToNhwcKernel` and `nhwcToNchwKernel` do that, or a `contiguous`
inside the convolution's op where input and weight differ in layout. Or the program asked for it:
`contiguous()`, or a `clone()` or `to(memory_format=...)` whose copy has other strides, of a transposed,
permuted or expanded tensor.

## Why it costs
The copy reads and writes the whole tensor and computes nothing, mostly with strided access, which reaches
a part of the memory's bandwidth. Around convolutions it happens before and after each one.

## How to confirm
Look at the op above the copy; with `record_shapes=True` its strides are recorded, with `with_stack=True` the
line of code.

## How to fix
For convolutions: put the model and its input into `channels_last` once (`channels_last_3d` for conv3d; conv1d
has none: run it as a conv2d of height 1). Otherwise produce the tensor in the layout in which it is read,
transpose once outside the loop what stays the same from step to step, or let the consumer take the strided
tensor: matrix products, elementwise ops and fused attention do.

## When it is fine
Where many reads follow that are faster in the new layout than the copy was slow. What the program asked for
by name is a note with its cost, what a convolution does by itself is a warning from 1 % of the trace's GPU
time and of the time in which the GPU works or waits for launches. In networks with about as many group norms
as convolutions it is a note: PyTorch's group norm works in NCHW, so that channels_last moves the copies
without saving them. A copy inside another op (`reshape` of a transposed tensor, `softmax` with `dtype=`) is
no matter of this check but a `hidden-copy`.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from tracehunch.checks._activities import on_gpu, uses
from tracehunch.checks._ancestry import called_op, enclosing
from tracehunch.checks._convolved import layout_fix
from tracehunch.checks._copies import amount, per_call
from tracehunch.checks._launch_time import Waited
from tracehunch.checks._layouts import (
    CONTIGUOUS,
    copies_inside_convolutions,
    layout_copies,
    library_transforms,
    unnamed_layout_copies,
)
from tracehunch.checks._scopes import Placement, place, place_ops
from tracehunch.checks._weight import is_material, is_noticeable, severity_of_elapsed
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Api
from tracehunch.tree.names import names_that
from tracehunch.units import join
from tracehunch.verdict import CannotTell, Finding

ID: Final = "layout-copy"
_PADDING: Final = "AddPadding"
_COMPARE: Final = (
    "Measure the network in both layouts, model.to(memory_format=torch.channels_last) with its input and "
    "torch.contiguous_format: aten::group_norm works in NCHW and hands its result on in it, so that between "
    "group norms and convolutions one of them copies either way."
)
_INSTEAD: Final = {
    "aten::contiguous": "Drop contiguous() where the consumer takes strided input, as matrix products, "
    "elementwise ops and fused attention do; otherwise produce the tensor in the contiguous layout in the "
    "first place, or copy it once outside the loop if it does not change.",
    "aten::clone": "Drop the clone where nothing writes to either tensor; or produce the tensor in the "
    "layout of the copy.",
}
_CONVERT_ONCE: Final = "Convert the tensor once, where it is made, instead of at each use."


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find changes of layout by convolution libraries, inside convolutions, and on request, by scope."""
    where = place(facts) if on_gpu(facts) else place_ops(facts)
    for scope, rows in where.by_scope(library_transforms(facts)):
        yield from _of_library(facts, where, scope, rows)
    for scope, rows in where.by_scope(copies_inside_convolutions(facts)):
        yield from _inside_convolutions(facts, where, scope, rows)
    asked_for = layout_copies(facts)
    names = facts.tree.trace.name[called_op(facts.tree, asked_for)]
    for scope, _, rows in where.groups(asked_for, names):
        yield from _on_request(facts, where, scope, rows)
    for scope, rows in where.by_scope(unnamed_layout_copies(facts)):
        yield from _of_nobody(facts, where, scope, rows)


def _of_library(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[Finding]:
    """Report the conversions that a library makes around its convolutions."""
    stake = where.per_call_us(scope, rows)
    if not is_noticeable(facts, scope, stake):
        return
    tree = facts.tree
    library, conversions = _conversions(facts, rows)
    around = f" ({join(conversions)})" if conversions else ""
    padding = names_that(tree.trace, lambda name: _PADDING in name)[tree.trace.name[rows]].all()
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note" if _between_group_norms(facts) else severity_of_elapsed(facts, scope, rows, stake),
        confidence="high",
        time_at_stake_us=stake,
        summary=f"{library} changes the layout of what convolutions read and write{around}: "
        f"{amount(facts, scope, rows, ('kernel',))}{at_source(tree, int(rows[0]))}",
        cause=f"{library}'s kernel wants {'more channels' if padding else 'another layout'} than the tensors "
        "have. At stake is the time of the conversions.",
        fix="Use channel counts that are multiples of 8." if padding else _fix(facts, rows),
        evidence=tree.trace.events(rows),
        subject=_subject(facts, rows),
        per_call=per_call(scope, rows),
    )


def _conversions(facts: Facts, rows: Int64) -> tuple[str, list[str]]:
    """Name the library and the conversions that kernels make, as far as their names tell."""
    names = {facts.tree.trace.name_of(row) for row in rows.tolist()}
    made_by = [use.identity for use in uses(facts) if use.name in names]
    library = "MIOpen" if any(identity.library == "miopen" for identity in made_by) else "cuDNN"
    fields = {value for identity in made_by for label, value in identity.fields if label == "conversion"}
    return library, sorted(fields)


def _fix(facts: Facts, rows: Int64) -> str:
    if _between_group_norms(facts):
        return _COMPARE
    return layout_fix(facts, rows)


def _between_group_norms(facts: Facts) -> bool:
    """Tell whether a program has a group norm for every other of its convolutions, as diffusion models do."""
    trace, names = facts.tree.trace, facts.tree.trace.name[facts.tree.ops]
    norms = int(names_that(trace, "aten::group_norm".__eq__)[names].sum())
    return 2 * norms > int(names_that(trace, "aten::convolution".__eq__)[names].sum())


def _subject(facts: Facts, rows: Int64) -> str:
    called = called_op(facts.tree, rows)
    return ", ".join(sorted({facts.tree.trace.name_of(op) for op in called.tolist() if op != NONE}))


def _inside_convolutions(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[Finding]:
    """Report copies of inputs that a convolution makes because its operands differ in layout."""
    spent = where.per_call_us(scope, rows)
    if not is_noticeable(facts, scope, spent):
        return
    tree, subject = facts.tree, _subject(facts, rows)
    waited = Waited.of(facts, scope, rows, enclosing(tree, rows, CONTIGUOUS.__eq__))
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity=severity_of_elapsed(facts, scope, rows, spent + waited.us),
        confidence="high",
        time_at_stake_us=spent + waited.us,
        summary=f"{subject} copies an operand into another layout: {amount(facts, scope, rows)}"
        f"{at_source(tree, int(rows[0]))}",
        cause="Input and weight differ in layout, or one is strided, so that one is copied in each call. At "
        f"stake is the time of the copies{waited}.",
        fix=_fix(facts, rows),
        evidence=tree.trace.events(np.concatenate([rows, np.unique(called_op(tree, rows))])),
        subject=subject,
        per_call=per_call(scope, rows),
        idle=waited.pieces,
    )


def _on_request(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[Finding]:
    """Report copies that the program asked for by name, for the sake of their layout."""
    spent = where.per_call_us(scope, rows)
    if not is_noticeable(facts, scope, spent):
        return
    tree, name = facts.tree, _subject(facts, rows)
    waited = Waited.of(facts, scope, rows, called_op(tree, rows))
    yield Finding(
        id=ID,
        scope=scope.scope.name,
        severity="note",
        confidence="high",
        time_at_stake_us=spent + waited.us,
        summary=f"{name}, called by the program, lays tensors out anew: {amount(facts, scope, rows)}"
        f"{at_source(tree, int(rows[0]))}",
        cause="The tensor is transposed, permuted or expanded, and the program asks for a copy in another "
        f"layout. At stake is the time of the copies{waited}, if they can be done without.",
        fix=_INSTEAD.get(name, _CONVERT_ONCE),
        evidence=tree.trace.events(np.concatenate([rows, np.unique(called_op(tree, rows))])),
        subject=name,
        per_call=per_call(scope, rows),
        idle=waited.pieces,
    )


def _of_nobody(facts: Facts, where: Placement, scope: ScopeFacts, rows: Int64) -> Iterator[CannotTell]:
    """Say that the trace does not have the op of some strided copies, as in the replay of a CUDA graph."""
    if is_material(facts, scope, where.per_call_us(scope, rows)):
        replayed = (facts.tree.api[facts.tree.launch[rows]] == Api.GRAPH).any()
        reason = (
            f"{amount(facts, scope, rows)} with strided access, launched outside any op: what made them is "
            "not in the trace"
        )
        yield CannotTell(ID, scope.scope.name, reason, "a run without the CUDA graph" if replayed else "")
