"""Known hazards of the calls that a trace shows, each as bad as what is known of them allows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from tracehunch.predict.environment import Backend
from tracehunch.predict.sdpa import Hazard, hazards
from tracehunch.predict.traced.explain import with_environment
from tracehunch.predict.traced.masks import may_be_causal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.predict.sdpa.call import MaskContent
    from tracehunch.predict.traced.explain import Case, Group
    from tracehunch.predict.traced.masks import Causal

Severity = Literal["error", "warning", "note"]
Confidence = Literal["high", "medium", "low"]

_MORE_LIKELY_THAN_NOT: Final = 0.5
_GUESSED: Final = "square-mask"
"""Rests on the mask's shape alone."""
_CONTENTS: Final[Mapping[Causal, MaskContent]] = {"likely": "causal", "possible": "perhaps-causal"}


@dataclass(frozen=True, slots=True)
class TracedHazard:
    """A hazard of a group's calls; `versions` says in which torch versions, "" where in every one it may be.

    `case` is one that has it, of the newest of these versions.
    """

    hazard: Hazard
    severity: Severity
    confidence: Confidence
    versions: str
    case: Case


def traced_hazards(
    group: Group, triangles: frozenset[tuple[int, int]] = frozenset(), *, has_backward: bool = True
) -> tuple[TracedHazard, ...]:
    """Return the hazards of a group's calls as they ran.

    A hazard that only some of the versions have which the trace leaves open is a note of low confidence where
    at least half of them do, and nothing else. `triangles` are the sizes of causal triangles that the trace
    makes; `has_backward` is whether it shows one of attention at all.
    """
    cases = [_with_mask(case, triangles) for case in _as_ran(group)]
    if not cases or group.ran is None:
        return ()
    versions = list(dict.fromkeys(case.env.torch_name for case in cases))
    held: dict[str, list[tuple[Case, Hazard]]] = {}
    for case in cases:
        for hazard in hazards(case.call, case.env, case.prediction):
            if hazard.in_trace is not None and (has_backward or not hazard.of_backward):
                held.setdefault(hazard.id, []).append((case, hazard))
    found = []
    for each in held.values():
        sure = {case.env.torch_name for case, _ in each}
        # an open argument must not matter
        sure = {name for name in sure if _all_of(cases, name) == _all_of([case for case, _ in each], name)}
        if len(sure) >= _MORE_LIKELY_THAN_NOT * len(versions):
            found.append(_judged(group, each, [name for name in versions if name in sure], versions))
    return tuple(found)


def _judged(
    group: Group,
    each: Sequence[tuple[Case, Hazard]],
    sure: Sequence[str],
    versions: Sequence[str],
) -> TracedHazard:
    case, hazard = each[-1]
    assert hazard.in_trace is not None
    everywhere = len(sure) == len(versions)
    assumed = hazard.of_cudnn and not group.setting.cudnn_recorded
    if not everywhere or assumed:
        some = "" if everywhere else f"in torch {_span(sure)}, of {_span(versions)} that it may be"
        return TracedHazard(hazard, "note", "low", some, case)
    confidence: Confidence = "high" if hazard.certain else "medium"
    if hazard.id == _GUESSED:
        confidence = "low"
    return TracedHazard(hazard, hazard.in_trace, confidence, "", case)


def _as_ran(group: Group) -> tuple[Case, ...]:
    """Return the cases that give what ran; where none does, those with the backend pinned, or forced."""
    if group.fitting or group.ran not in get_args(Backend):
        return group.fitting
    ran = cast("Backend", group.ran)
    pinned = [with_environment(case, pinned=(ran,)) for case in group.cases]
    taken = tuple(case for case in pinned if case.prediction.chosen == ran)
    return taken or tuple(_forced(case, ran) for case in pinned)


def _forced(case: Case, ran: Backend) -> Case:
    """Take a backend to have run, as it did, though the rules do not say that it can."""
    return replace(case, prediction=replace(case.prediction, chosen=ran, ran=ran, raises=None))


def _with_mask(case: Case, triangles: frozenset[tuple[int, int]]) -> Case:
    content = _CONTENTS.get(may_be_causal(case.call, triangles))
    return case if content is None else replace(case, call=replace(case.call, mask_content=content))


def _all_of(cases: Sequence[Case], torch_name: str) -> int:
    return sum(case.env.torch_name == torch_name for case in cases)


def _span(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
