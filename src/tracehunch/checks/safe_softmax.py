"""safe-softmax: guard kernels around softmax in the math fallback.

## What it means
The math fallback of `scaled_dot_product_attention` does not call plain softmax but `aten::_safe_softmax`,
which guards against rows in which every key is masked: it compares all scores with minus infinity
(`isneginf`, in older releases `eq`), reduces the result per row (`all`), and replaces such rows by zeros
(`where`). The finding gives the time of those guards.

## Why it costs
The guards read the score matrix (query length times key length) twice more and write it once more. They
take about as long as the softmax itself, or longer, and they run whether or not any row is masked out.

## How to confirm
Look below `aten::_safe_softmax` for kernels that are not those of `aten::softmax`.

## How to fix
Let a fused kernel run (see `sdpa-math-fallback`): it handles masked rows as it goes. Where attention is
written by hand and no row can be masked out entirely, plain `torch.softmax` needs no guard.

## When it is fine
When rows can be masked out entirely, as with padding, something has to guard them; without it the result is
NaN.
"""

from collections.abc import Iterable
from typing import Final

from tracehunch.checks._ancestry import child_under
from tracehunch.checks._scopes import by_call_us, durations_us
from tracehunch.checks._sdpa_inputs import is_for_dropout, largest_inputs
from tracehunch.checks._sdpa_math import MATH_OP, math_calls
from tracehunch.checks._weight import on_average, severity
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts
from tracehunch.tree.names import names_that
from tracehunch.units import plural, ratio, time_us
from tracehunch.verdict import Finding

ID: Final = "safe-softmax"
_SAFE: Final = "aten::_safe_softmax"
_PLAIN: Final = frozenset({"aten::softmax", "aten::_softmax"})


def check(facts: Facts) -> Iterable[Finding]:
    """Time of the guards in ``aten::_safe_softmax``, by scope."""
    tree = facts.tree
    plain = names_that(tree.trace, _PLAIN.__contains__)
    for math in math_calls(facts):
        for_dropout = is_for_dropout(largest_inputs(tree.trace, math.calls, on_gpu=math.on_gpu))
        safe = math.named(tree, frozenset({_SAFE}))
        is_plain = plain[tree.trace.name[child_under(tree, safe.rows, safe.parts)]]
        guards = safe.rows[~is_plain]
        if not guards.size:
            continue
        calls = len(math.scope.scope.calls)
        times = by_call_us(facts, math.scope, guards)
        stake = float(times.mean())
        softmax = float(durations_us(tree.trace, safe.rows[is_plain]).sum()) / calls
        beside = f", {ratio(stake / softmax)} the softmax itself" if softmax else ""
        each = plural(round(guards.size / safe.calls.size, 1), "guard kernel" if math.on_gpu else "guard op")
        yield Finding(
            id=ID,
            scope=math.scope.scope.name,
            severity="note" if for_dropout else severity(facts, math.scope, guards),
            confidence="high",
            time_at_stake_us=stake,
            summary=f"safe softmax adds {each} per SDPA call: {time_us(stake)} per call of the "
            f"scope{on_average(times)}{beside}{at_source(tree, int(guards[0]))}",
            cause="aten::_safe_softmax checks every row for being masked out entirely and zeroes such rows. "
            "At stake is the time of the guards, without the softmax.",
            fix="Let a fused backend run (see sdpa-math-fallback); in attention written by hand, where no "
            "row is masked out entirely, use torch.softmax(scores, dim=-1).",
            evidence=tree.trace.events(guards),
            subject=MATH_OP,
            per_call=round(guards.size / calls, 1),
        )
