"""mask-rebuilt: the causal mask is made anew in every call.

## What it means
`scaled_dot_product_attention(..., is_causal=True)` ran as its math fallback, which has no causal kernel.
Each call therefore builds the mask from nothing: `ones`, `tril`, a scalar for minus infinity, and `where`
to turn the result into an additive mask, which is then added to all scores. The finding counts the kernels
that build it and their time.

## Why it costs
The mask is the same in every layer and every step of one sequence length, and building it takes four or
five launches. For short sequences the launches cost more than the work; for long ones the mask is a matrix
of the square of the length.

## How to confirm
Look below `aten::_scaled_dot_product_attention_math` for `aten::ones`, `aten::tril` and `aten::where`, once
a call.

## How to fix
Get a fused kernel to run (see `sdpa-math-fallback`): it works out the mask from the indices and reads none.
Where the math fallback has to stay, build the additive mask once per length and pass it as `attn_mask` with
`is_causal=False`.

## When it is fine
While debugging with the backend pinned to math on purpose.
"""

from collections.abc import Iterable
from typing import Final

from tracehunch.checks._scopes import by_call_us
from tracehunch.checks._sdpa_inputs import is_for_dropout, largest_inputs
from tracehunch.checks._sdpa_math import MATH_OP, math_calls
from tracehunch.checks._weight import on_average, severity
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts
from tracehunch.tree.names import names_that
from tracehunch.units import join, plural, time_us
from tracehunch.verdict import Finding

ID: Final = "mask-rebuilt"
_BUILDERS: Final = frozenset(
    {"aten::ones", "aten::tril", "aten::triu", "aten::scalar_tensor", "aten::where", "aten::full"}
)
_TRIANGLES: Final = frozenset({"aten::tril", "aten::triu"})


def check(facts: Facts) -> Iterable[Finding]:
    """Masks built inside the math fallback, by scope."""
    tree = facts.tree
    triangle = names_that(tree.trace, _TRIANGLES.__contains__)
    for math in math_calls(facts):
        for_dropout = is_for_dropout(largest_inputs(tree.trace, math.calls, on_gpu=math.on_gpu))
        made = math.named(tree, _BUILDERS)
        if not triangle[tree.trace.name[made.parts]].any():
            continue  # a mask that was passed is converted, not rebuilt
        names = dict.fromkeys(tree.trace.name_of(int(part)).removeprefix("aten::") for part in made.parts)
        times = by_call_us(facts, made.scope, made.rows)
        stake = float(times.mean())
        each = plural(round(made.rows.size / made.calls.size, 1), "kernel" if made.on_gpu else "op")
        yield Finding(
            id=ID,
            scope=made.scope.scope.name,
            severity="note" if for_dropout else severity(facts, made.scope, made.rows),
            confidence="high",
            time_at_stake_us=stake,
            summary=f"the causal mask is rebuilt in every SDPA call: {each} ({join(list(names))}), "
            f"{time_us(stake)} per call of the scope{on_average(times)}{at_source(tree, int(made.rows[0]))}",
            cause="The math fallback has no causal kernel, so is_causal=True builds a mask each time. At "
            "stake is the time of the activities that build it; adding it to the scores is not counted.",
            fix="Let a fused backend run, which needs no mask; or build the additive mask once and pass it: "
            "mask = torch.full((L, S), float('-inf'), device=q.device, dtype=q.dtype).triu(1); "
            "F.scaled_dot_product_attention(q, k, v, attn_mask=mask).",
            evidence=tree.trace.events(made.rows),
            subject=MATH_OP,
            per_call=round(made.rows.size / len(made.scope.scope.calls), 1),
        )
