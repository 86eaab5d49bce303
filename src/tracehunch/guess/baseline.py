"""A trace as a guess about later ones: the baseline of a regression test, made of what does not flake.

Claimed are counts, the SDPA backend, data types, the use of tensor cores, and the ops that torch.compile
merged. A count is exact where all calls agree and else a range over the calls. Times are claimed only when
asked for, only GPU time (host time depends on all else that the machine does), and as a range: from the
fastest to the slowest call, widened on both sides by the larger of that spread and a tenth of the median,
which is what clocks and temperature move between runs.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from tracehunch.errors import GuessError
from tracehunch.facts.compiled.stable import merged_sets
from tracehunch.facts.model import Fact, Facts, ScopeFacts
from tracehunch.guess.context import context_of
from tracehunch.guess.model import Claim, Guess
from tracehunch.guess.scopes import near_names, scopes_named
from tracehunch.guess.write import writable
from tracehunch.trace.model import Int64
from tracehunch.tree import Scope, Tree
from tracehunch.tree.ownership import Layout

GPU_COUNTS: Final = (
    "kernels", "copies", "copies.dtod", "copies.htod", "copies.dtoh", "copies.ptop", "copy_kernels",
    "memsets", "syncs",
)  # fmt: skip
CPU_COUNTS: Final = ("leaf_ops",)
"""What a scope without GPU work has in place of kernels."""

WHERE_ANY: Final = (
    "graph", "compiled", "compiled.kernels", "compiled.graph_breaks", "compiled.recompiles",
)  # fmt: skip
"""Claimed only of scopes that replay graphs or run compiled regions."""

TEXTS: Final = ("sdpa.backend", "dtype", "tensor_cores")
TIMES: Final = ("gpu_time",)

MARGIN: Final = 0.10


def baseline(facts: Facts, *, times: bool = False, scopes: Sequence[str] = ()) -> Guess:
    """Return what the trace shows of its annotations and steps (else of the whole), or of the scopes named.

    Raises:
        GuessError: a scope that the trace does not have, or nothing that could be claimed.

    """
    context = context_of(facts.tree.trace)
    claims: list[Claim] = []
    for one in _chosen(facts, scopes):
        claims += _claims(one, times=times and "device" in context)
        claims += [
            Claim("fused", "merged", ops, one.scope.name, "baseline", unit="text")
            for ops in merged_sets(one, facts.tree)
        ]
    if not claims:
        raise GuessError(
            f"{facts.tree.trace.label} shows nothing to claim", "no op and no GPU activity in any scope"
        )
    return Guess(tuple(claims), context)


def _chosen(facts: Facts, names: Sequence[str]) -> list[ScopeFacts]:
    if names:
        found = [one for name in names for one in _known(name, facts)]
        return list({one.scope.name: one for one in found}.values())
    wanted = [
        one for one in facts.scopes if one.scope.kind in ("annotation", "step") and writable(one.scope.name)
    ]
    wanted = list({one.scope.name: one for one in reversed(wanted)}.values())[::-1]  # the first of each name
    annotations = [one for one in wanted if one.scope.kind == "annotation"]
    wanted = [
        one
        for one in wanted
        if one.scope.kind != "step" or not any(_same_work(one, a, facts.tree) for a in annotations)
    ]
    return wanted or [one for one in facts.scopes if one.scope.kind == "whole"]


def _same_work(one: ScopeFacts, other: ScopeFacts, tree: Tree) -> bool:
    """Whether two scopes own the same in every call: to claim both would tell each change twice."""
    if len(one.scope.calls) != len(other.scope.calls):
        return False
    ownership = tree.ownership
    return all(
        np.array_equal(_fingerprints(layout, n, one.scope), _fingerprints(layout, n, other.scope))
        for layout, n in ((ownership.gpu, len(tree.trace.gpu.row)), (ownership.ops, tree.ops.size))
    )


def _fingerprints(layout: Layout, n_items: int, scope: Scope) -> Int64:
    """Return a number for what each call owns: sums of random numbers, equal only if the same was summed."""
    weights = np.random.default_rng(0).integers(1, 1 << 62, size=n_items)
    return layout.sums(weights)[0][scope.first_call : scope.first_call + len(scope.calls)]


def _known(name: str, facts: Facts) -> Sequence[ScopeFacts]:
    found = scopes_named(name, facts)
    if not found:
        near = near_names(name, [one.scope.name for one in facts.scopes], 1)
        hint = near or [one.scope.name for one in facts.scopes if one.scope.kind != "framework"][:5]
        raise GuessError(
            f"no scope {name!r}", "", f"did you mean {hint[0]}?" if near else f"there are {', '.join(hint)}"
        )
    return found


def _claims(one: ScopeFacts, *, times: bool) -> Iterator[Claim]:
    on_gpu = any(len(call.gpu) for call in one.scope.calls)
    counts = GPU_COUNTS if on_gpu else CPU_COUNTS
    for key in (*counts, *WHERE_ANY, *TEXTS, *(TIMES if times and on_gpu else ())):
        fact = one.facts.get(key)
        if fact is not None and not _goes_without_saying(key, one):
            yield _claim(fact, one.scope.name)


def _goes_without_saying(key: str, one: ScopeFacts) -> bool:
    """Tell whether a claim would repeat another: all copies go one way, or nothing is compiled at all."""
    family = key.partition(".")[0]
    if key == "compiled.kernels" and one.value(key) == one.value("kernels"):
        return True  # it is all that runs
    if key == "copies" or family not in ("copies", "graph", "compiled"):
        return False
    fact, total = one.facts.get(key), one.facts.get(family)
    if fact is None or total is None:
        return fact is None
    repeats = family == "copies" and (fact.value, fact.low, fact.high) == (total.value, total.low, total.high)
    own = fact if family == "copies" else total
    return repeats or (own.value == 0 and not own.high)


def _claim(fact: Fact, scope: str) -> Claim:
    """Exactly what was seen; a range where it was not always the same."""
    if isinstance(fact.value, (str, tuple)):
        return Claim(fact.key, "==", fact.value, scope, "baseline", unit=fact.unit)
    low = fact.value if fact.low is None else fact.low
    high = fact.value if fact.high is None else fact.high
    if fact.unit == "us":
        margin = max(high - low, MARGIN * fact.value)
        span = (round(max(low - margin, 0.0), 3), round(high + margin, 3))
        return Claim(fact.key, "in", span, scope, "baseline", unit=fact.unit)
    if low == high:
        return Claim(fact.key, "==", int(fact.value), scope, "baseline", unit=fact.unit)
    return Claim(fact.key, "in", (low, high), scope, "baseline", "calls differ", unit=fact.unit)
