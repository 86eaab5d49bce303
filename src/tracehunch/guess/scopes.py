"""The scope that a claim names -> the facts of the scopes it is about.

A name is looked for among annotations, modules and steps exactly as it is written, then as ``step``, as the
end of a module's path (``Attention_3`` of ``Model_0/Attention_3``), as an op. ``*`` is every annotation that
the user wrote.
"""

import difflib
from collections.abc import Iterable
from typing import Final

from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.guess.op_scope import op_names, op_scope

EVERY: Final = "*"
STEP: Final = ("step", "steps", "ProfilerStep")

_LONGEST: Final = 256
"""Characters of a name that is compared with others: that takes time in their square."""


def scopes_named(name: str, facts: Facts) -> tuple[ScopeFacts, ...]:
    """Return the scopes that a claim about ``name`` is about; () where the trace has none."""
    if name == EVERY:
        return tuple(one for one in facts.scopes if one.scope.kind == "annotation")
    exact = facts.scope(name)
    if exact is not None:
        return (exact,)
    if name in STEP:
        return tuple(one for one in facts.scopes if one.scope.kind == "step")[:1]
    modules = [one for one in facts.scopes if one.scope.kind == "module"]
    if by_path := tuple(one for one in modules if one.scope.name.endswith(f"/{name}")):
        return by_path
    by_op = op_scope(name, facts)
    return () if by_op is None else (by_op,)


def why_missing(name: str, facts: Facts) -> tuple[str, str]:
    """Why there is no such scope, and what would record it."""
    if name == EVERY:
        return (
            "the trace has no annotations",
            'torch.profiler.record_function("NAME") around the code in question',
        )
    if name in STEP:
        return "the trace has no profiler steps", "prof.step() after each step"
    known = [one.scope.name for one in facts.scopes]
    there = [one.scope.name for one in facts.scopes if one.scope.kind in ("annotation", "step", "whole")]
    near = near_names(name, [*known, *op_names(facts)]) or there[:5]
    return (
        f"the trace has no scope {name!r}; near it: {', '.join(near)}",
        f'torch.profiler.record_function("{name}") around the code in question',
    )


def near_names(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Return the names that resemble one, best first; without the endless ones that damaged traces have."""
    comparable = [one for one in dict.fromkeys(known) if len(one) <= _LONGEST]
    return difflib.get_close_matches(name[:_LONGEST], comparable, n)
