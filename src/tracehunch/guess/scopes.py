"""The scope that a claim names -> the facts of the scopes it is about.

A name is looked for among annotations, modules and steps exactly as it is written, then as ``step``, as the
end of a module's path (``Attention_3`` of ``Model_0/Attention_3``), as an op. ``*`` is every annotation that
the user wrote.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Final

from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.guess.op_scope import op_names, op_scope
from tracehunch.units import join

EVERY: Final = "*"
STEP: Final = ("step", "steps", "ProfilerStep")

_MODULE: Final = re.compile(r"(nn\.Module: )?([\w.]+/)*[A-Z]\w*_\d+(/[\w.]+)*|[\w.]+(/[\w.]+)+")
"""What names of modules look like: ``Linear_4``, ``Model_0/Attention_3``, ``layers.0/attn``."""

_SHOWN: Final = 5

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
    missing = f"the trace has no scope {name!r}"
    near = near_names(name, [one.scope.name for one in facts.scopes])
    if not near and _MODULE.fullmatch(name) and not facts.tree.trace.header.recorded.modules:
        return f"{missing}: modules were not recorded", "with_stack=True"
    if near := near or near_names(name, op_names(facts)):
        return f"{missing}: did you mean {join(near, 'or')}?", ""
    there = [one.scope.name for one in facts.scopes if one.scope.kind in ("annotation", "step", "whole")]
    annotate = f'torch.profiler.record_function("{name}") around the code in question'
    return f"{missing}; it has {join(there[:_SHOWN])}", "" if "::" in name else annotate


def near_names(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Return the names that resemble one, best first; without the endless ones that damaged traces have."""
    comparable = [one for one in dict.fromkeys(known) if len(one) <= _LONGEST]
    return difflib.get_close_matches(name[:_LONGEST], comparable, n)
