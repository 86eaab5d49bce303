"""Whether ops that somebody names run merged in one generated kernel, and if not, where each of them runs."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tracehunch.facts.compiled.names import Generated
from tracehunch.facts.compiled.op_words import alternatives, is_product, plain_word
from tracehunch.facts.compiled.ran import Ran, ran_by_call
from tracehunch.tree import Scope, Tree
from tracehunch.units import elide, join

_SHOWN: Final = 2
_EVIDENCE: Final = 64
_SIMILAR: Final = 0.75
_LONG: Final = 60


@dataclass(frozen=True, slots=True)
class Together:
    """What became of the ops. ``holds`` is None where the trace cannot tell; ``reason`` says why then."""

    holds: bool | None
    seen: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    reason: str = ""
    record_with: str = ""


def how_to_record(tree: Tree) -> str:
    """Say what records the kernels of compiled code, on the device that a trace is of."""
    if tree.trace.header.devices:
        return "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
    return "torch._inductor.config.cpp.enable_kernel_profile = True, set before compiling"


def merged_together(ops: Sequence[str], scope: Scope, tree: Tree) -> Together:
    """Tell whether one generated kernel holds all of these ops, in every call of a scope that runs kernels.

    Ops are named as programs do, ``gelu`` or ``aten::gelu``; the joined ops of a kernel's name, or all of the
    name, stand for all that is in it.
    """
    every = ran_by_call(scope, tree)
    calls = [ran for ran in every if ran]
    if not any(ran.kernels or ran.unnamed for ran in calls):
        on_gpu = bool(tree.trace.gpu.row.size)
        if not on_gpu and any(ran.compiled for ran in every):
            reason = "compiled code ran, and its kernels were not recorded"
            return Together(None, reason=reason, record_with=how_to_record(tree))
        if not calls:
            what = "no kernel" if on_gpu else "neither op nor kernel"
            return Together(None, reason=f"{what} of this scope was recorded")
    holding = [
        [row for kernel, row in ran.kernels.items() if not _lacking(kernel, ops, ran)] for ran in calls
    ]
    without = [ran for ran, rows in zip(calls, holding, strict=True) if not rows]
    if not without:
        return Together(holds=True, rows=tuple(row for rows in holding for row in rows)[:_EVIDENCE])
    if doubt := next((doubt for ran in without if (doubt := _doubt(ran, ops))), ""):
        return Together(None, reason=doubt)
    return _apart(ops, without, len(calls))


def _apart(ops: Sequence[str], without: Sequence[Ran], n_calls: int) -> Together:
    """Say where the ops run in the calls in which no kernel has them all."""
    rows = [
        row
        for ran in without
        for kernel, row in ran.kernels.items()
        if len(_lacking(kernel, ops, ran)) < len(ops)
    ]
    n_held = n_calls - len(without)
    seen = _places(ops, without)
    if n_held:
        seen = (f"together in {n_held} of {n_calls} calls", *seen)
    return Together(holds=False, seen=seen, rows=tuple(rows[:_EVIDENCE]))


def _lacking(kernel: Generated, ops: Sequence[str], ran: Ran) -> list[str]:
    """Return the ops that a kernel does not hold."""
    words = frozenset(plain_word(op) for op in kernel.ops)
    whole = (kernel.joined, kernel.name)
    return [op for op in ops if op.strip() not in whole and not _holds(kernel, words, op, ran)]


def _holds(kernel: Generated, words: frozenset[str], op: str, ran: Ran) -> bool:
    if is_product(op) and not kernel.is_template and _by_itself(op, ran.eager):
        return False  # named for what the kernel lays out for it, or takes from it
    return any(parts <= words for parts in alternatives(op))


def _by_itself(op: str, eager: Mapping[str, str]) -> str:
    """Return the op of a library that is what somebody calls ``op``; "" if none ran."""
    words = [word for parts in alternatives(op) if len(parts) == 1 for word in parts]
    found = next((eager[word] for word in words if word in eager), "")
    if not found and "attention" in plain_word(op):
        found = next((name for word, name in eager.items() if "attention" in word), "")
    return found


def _doubt(ran: Ran, ops: Sequence[str]) -> str:
    """Say which kernel may hold the ops, for all that its name tells; "" if none may."""
    nowhere = [op for op in ops if not _where(op, [ran])]
    for kernel in ran.kernels:
        lacking = _lacking(kernel, ops, ran)
        if kernel.cut and all(_may_be_behind(op, kernel) for op in lacking):
            return f"the name of {kernel.name} is cut: {join(lacking)} may have been in it"
        if not kernel.joined and nowhere:
            return f"the name of {kernel.name} does not say what was merged in it: maybe {join(nowhere)}"
    if ran.unnamed and nowhere:
        return "generated kernels have no names of their own (unique_kernel_names=False)"
    return ""


def _may_be_behind(op: str, kernel: Generated) -> bool:
    """Tell whether an op may stand behind a cut: ops are in ascending order."""
    last = kernel.ops[-1] if kernel.ops else ""
    return plain_word(op) >= last.strip("_")


def _places(ops: Sequence[str], calls: Sequence[Ran]) -> tuple[str, ...]:
    """Return for each op where it runs, as ``gelu: triton_poi_fused_gelu_0``."""
    known = {plain_word(op) for ran in calls for kernel in ran.kernels for op in kernel.ops}
    known.update(word for ran in calls for word in ran.eager)
    return tuple(f"{op}: {_place(op, calls, known)}" for op in ops)


def _place(op: str, calls: Sequence[Ran], known: set[str]) -> str:
    names = _where(op, calls)
    if not names:
        near = difflib.get_close_matches(plain_word(op)[:64], sorted(known), n=1, cutoff=_SIMILAR)
        return f"not found (did you mean {near[0]}?)" if near else "not found"
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return join([*(elide(name, _LONG) for name in names[:_SHOWN]), *more])


def _where(op: str, calls: Sequence[Ran]) -> list[str]:
    """Names of the kernels that hold an op, and of the op that ran by itself."""
    kernels = [kernel.name for ran in calls for kernel in ran.kernels if not _lacking(kernel, [op], ran)]
    alone = [name for ran in calls if (name := _by_itself(op, ran.eager))]
    return list(dict.fromkeys([*kernels, *alone]))
