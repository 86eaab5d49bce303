"""Why some calls of a trace ran on their backend, in a clause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.predict.traced.causes import causes
from tracehunch.predict.traced.explain import explain
from tracehunch.units import join

if TYPE_CHECKING:
    from collections.abc import Collection

    from tracehunch.predict.traced.explain import Case, Group
    from tracehunch.tree import Tree

_FORCED: Final = "the others were switched off (sdpa_kernel, torch.backends.cuda.enable_*_sdp)"
_PINS: Final = ("pinned", "switched off")
_SHOWN: Final = 2
_ABSENT: Final = "not-on-device"  # a check of backends that the device does not have


def why_it_ran(tree: Tree, rows: Collection[int], ran: str) -> str:
    """Return why calls (rows of their outermost ops) ran on a backend; "" where the trace does not tell.

    Of several kinds of calls those that took longest are told of.
    """
    wanted = frozenset(rows)
    groups = [
        group
        for group in explain(tree).groups
        if group.ran == ran and group.cases and any(call.row in wanted for call in group.calls)
    ]
    if not groups:
        return ""
    group = max(groups, key=lambda one: (one.gpu_us or one.cpu_us) * len(one.calls))
    if group.verdict not in ("as predicted", "surprise"):
        return ""
    chosen = sorted({str(case.prediction.chosen) for case in group.cases})
    if "error" in chosen:
        return ""
    said = f"for these inputs {_whose(group)} picks {join(chosen, 'or')} by itself"
    if group.verdict == "surprise":
        return f"{said}: {_how(group, ran)}"
    reasons = _refusals(group.cases[-1]) if ran == "math" else ""
    return f"{said} ({reasons})" if reasons else said


def _whose(group: Group) -> str:
    names = list(dict.fromkeys(case.env.torch_name for case in group.cases))
    if len(names) == 1:
        return f"torch {names[0]}"
    first, *others = {case.env.cuda for case in group.cases}
    built = f" built for CUDA {first[0]}.{first[1]}" if first is not None and not others else ""
    return f"every torch from {names[0]} to {names[-1]}{built}"


def _how(group: Group, ran: str) -> str:
    """Say what would have given what ran: a pin, and whatever else is known to."""
    others = [cause.words for cause in causes(group) if cause.id not in _PINS]
    more = len(others) - _SHOWN
    rest = f" and {more} more" if more > 0 else ""
    may_be = f"; or by {join(others[:_SHOWN], 'or')}{rest}" if others else ""
    return f"{ran} was pinned, or {_FORCED}{may_be}"


def _refusals(case: Case) -> str:
    """Say for each fused backend what it refuses first."""
    firsts = [one.first for one in case.prediction.answers if one.backend != "math"]
    return "; ".join(
        f"{first.backend}: {first.words}" for first in firsts if first is not None and first.check != _ABSENT
    )
