"""What a comparison cannot tell, since one of the traces does not show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.facts.vocabulary import KEYS
from tracehunch.units import printable
from tracehunch.verdict import CannotTell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.environment import EnvironmentDiff
    from tracehunch.compare.model import ScopeDiff
    from tracehunch.facts.model import Facts

_ASKED: Final = ("kernels", "gpu_time", "launches", "leaf_ops", "sdpa.backend", "dtype", "tensor_cores")
"""Facts that both sides should show; most others are absent where there is nothing to show."""

_CPU: Final = "activities=[ProfilerActivity.CPU]"
_GPU: Final = "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"


def untold(
    before: Facts, after: Facts, scopes: Sequence[ScopeDiff], environment: EnvironmentDiff
) -> Iterator[CannotTell]:
    """Yield what one of the traces would have to show, and does not."""
    if environment.same_kind:
        for name in environment.unknown("unknown before"):
            yield _environment(name, "before", "after")
        for name in environment.unknown("unknown after"):
            yield _environment(name, "after", "before")
    else:
        with_gpu, without = ("before", "after") if environment.on_gpu[0] else ("after", "before")
        facts = after if without == "after" else before
        label = printable(facts.tree.trace.label, 100)
        reason = (
            f"the trace {without} ({label}) has no GPU activity, the one {with_gpu} has: kernels, copies and "
            "times do not compare"
        )
        yield CannotTell("gpu_time", "whole", reason, _GPU)
    told: set[str] = set()
    for scope in scopes:
        if scope.pair.after.scope.kind in ("annotation", "step", "whole"):
            found = [one for one in _facts(scope) if one.key not in told]
            told |= {one.key for one in found}  # an annotation's goes before that of the step around it
            yield from found


def _environment(name: str, unknown: str, known: str) -> CannotTell:
    reason = (
        f"the trace {unknown} does not say its {name}, the one {known} does: whether they agree is unknown"
    )
    return CannotTell(f"environment.{name}", "whole", reason, "tracehunch's own capture")


def _facts(scope: ScopeDiff) -> Iterator[CannotTell]:
    for fact in scope.facts:
        if fact.key in _ASKED and fact.outcome == "unknown":
            where = "before" if fact.before is None else "after"
            reason = f"the trace {where} does not show it"
            needs = KEYS[fact.key].needs
            yield CannotTell(fact.key, scope.pair.name, reason, needs if needs != _CPU else "")
