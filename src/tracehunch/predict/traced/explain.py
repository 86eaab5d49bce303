"""What ran held against what was to be expected: groups of like calls, each with its verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tracehunch.predict.sdpa import predict_sdpa
from tracehunch.predict.sdpa.raising import is_empty
from tracehunch.predict.traced.calls import sdpa_calls
from tracehunch.predict.traced.setting import Setting, setting_of
from tracehunch.trace.model import Cat
from tracehunch.tree.names import STEP, STEP_PREFIX, is_framework

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.predict.environment import Environment
    from tracehunch.predict.sdpa import SdpaCall, SdpaPrediction
    from tracehunch.predict.traced.calls import TracedCall
    from tracehunch.predict.traced.recorded import Open
    from tracehunch.predict.traced.setting import Asked
    from tracehunch.tree import Tree

Verdict = Literal["surprise", "depends", "as predicted", "cannot tell"]
"""Another backend ran than was to be expected; it ran under some of the versions or readings that the trace
leaves open; under all of them; or nothing can be said."""

VERDICTS: Final[tuple[Verdict, ...]] = ("surprise", "depends", "as predicted", "cannot tell")

_WHOLE: Final = "whole"


@dataclass(frozen=True, slots=True)
class Case:
    """One reading of a call in one environment, and what was to be expected of it."""

    env: Environment
    call: SdpaCall
    prediction: SdpaPrediction

    def gives(self, ran: str | None, *, finished: bool | None = None) -> bool | None:
        """Tell whether what ran was to be expected; None where that cannot be told.

        What raises an error may have begun to run: `finished` is whether it got to its end.
        """
        if self.prediction.raises is not None:
            return not finished and ran in (None, self.prediction.chosen)
        if self.prediction.chosen is None:
            return None
        if is_empty(self.call):  # some versions ask a backend all the same
            return ran in (None, self.prediction.chosen)
        return ran is not None and self.prediction.ran == ran


@dataclass(frozen=True, slots=True)
class Group:
    """Calls of one scope that are alike in all that was recorded, and ran alike.

    `cases` are all that it may have been, oldest torch first, each with its plain reading first. `unknown`
    says why nothing can be said.
    """

    scope: str
    calls: tuple[TracedCall, ...]
    setting: Setting
    cases: tuple[Case, ...]
    verdict: Verdict
    unknown: str = ""

    @property
    def ran(self) -> str | None:
        """The backend that ran, None where none did or it was not recorded."""
        return self.calls[0].ran

    @property
    def finished(self) -> bool | None:
        """Whether the calls got to their end; None where the trace does not tell."""
        return self.calls[0].finished

    @property
    def fitting(self) -> tuple[Case, ...]:
        """The cases that give what ran."""
        return tuple(case for case in self.cases if case.gives(self.ran, finished=self.finished))

    @property
    def shown(self) -> Case | None:
        """The case to explain: of those that give what ran (if any), the newest torch's plainest."""
        among = self.fitting or self.cases
        if not among:
            return None
        return next(case for case in among if case.env.torch == among[-1].env.torch)

    @property
    def gpu_us(self) -> float | None:
        """Median GPU time of a call in microseconds; None where none was recorded."""
        times = [call.gpu_us for call in self.calls if call.gpu_us is not None]
        return float(np.median(times)) if times else None

    @property
    def cpu_us(self) -> float:
        """Median time of a call on the host."""
        return float(np.median([call.cpu_us for call in self.calls]))


@dataclass(frozen=True, slots=True)
class Explained:
    """All groups of a trace, the surprises first; `traced` calls of torch.compile's tracing ran nothing."""

    groups: tuple[Group, ...]
    traced: int = 0

    def count(self, verdict: Verdict) -> int:
        """How many calls have a verdict."""
        return sum(len(group.calls) for group in self.groups if group.verdict == verdict)


def explain(tree: Tree, asked: Asked | None = None) -> Explained:
    """Hold every SDPA call of a trace against the dispatcher's rules.

    Raises:
        GuessError: `asked` names a torch version that is not known.

    """
    calls = sdpa_calls(tree)
    ran = [call for call in calls if call.origin != "tracing"]
    settings: dict[tuple[object, int], Setting] = {}
    groups = []
    for scope, alike in _alike(tree, ran):
        where = (alike[0].place, alike[0].device)
        if where not in settings:
            settings[where] = setting_of(tree.trace, *where, asked)
        groups.append(_group(scope, alike, settings[where]))
    traced = sum(call.origin == "tracing" and call.is_sdpa for call in calls)
    return Explained(tuple(sorted(groups, key=_rank)), traced)


def _rank(group: Group) -> tuple[int, float]:
    total = (group.gpu_us or group.cpu_us) * len(group.calls)
    return VERDICTS.index(group.verdict), -total


def _alike(tree: Tree, calls: Sequence[TracedCall]) -> Iterator[tuple[str, tuple[TracedCall, ...]]]:
    """Group calls of one scope that do not differ but in time; devices of one kind do not matter."""
    found: dict[tuple[object, ...], list[TracedCall]] = {}
    for call in calls:
        kind = (call.origin, call.ran, call.place, call.recorded, call.unread, call.grad, call.finished)
        found.setdefault((_scope(tree, call.row), *kind), []).append(call)
    for (scope, *_), alike in found.items():
        yield str(scope), tuple(alike)


def _scope(tree: Tree, row: int) -> str:
    """Return the innermost annotation of the user's around a row, else the step, else the whole."""
    trace, step = tree.trace, _WHOLE
    for above in tree.ancestors(row):
        name = trace.name_of(above)
        if name.startswith(STEP_PREFIX):
            step = STEP
        elif trace.cat[above] == Cat.USER_ANNOTATION and not is_framework(name):
            return name
    return step


def _group(scope: str, alike: tuple[TracedCall, ...], setting: Setting) -> Group:
    one = alike[0]
    if one.recorded is None:
        return Group(scope, alike, setting, (), "cannot tell", one.unread)
    if not setting.envs:
        return Group(scope, alike, setting, (), "cannot tell", setting.unknown)
    cases = tuple(
        Case(env, call, predict_sdpa(call, env))
        for env in setting.envs
        for call in one.recorded.alternatives()
    )
    verdict, unknown = _verdict(cases, one)
    return Group(scope, alike, setting, cases, verdict, unknown)


def _verdict(cases: Sequence[Case], call: TracedCall) -> tuple[Verdict, str]:
    told = [case.gives(call.ran, finished=call.finished) for case in cases]
    if all(told):
        return "as predicted", ""
    if any(told):
        return "depends", ""
    if call.ran is None:
        return "cannot tell", "no op of a backend was recorded inside the call"
    if None in told:
        return "cannot tell", cases[told.index(None)].prediction.cannot_tell
    return "surprise", ""


def matters(group: Group, name: Open) -> bool:
    """Whether what is picked depends, in some version, on an argument that the trace leaves open."""
    recorded = group.calls[0].recorded
    if recorded is None:
        return False
    plain = set(recorded.without(name).alternatives())
    readings: dict[str, tuple[set[object], set[object]]] = {}
    for case in group.cases:
        among = readings.setdefault(case.env.torch_name, (set(), set()))
        among[case.call in plain].add((case.prediction.chosen, case.prediction.raises))
    return any(changed - usual for changed, usual in readings.values())


def with_environment(case: Case, **changes: object) -> Case:
    """Return the same call in a changed environment."""
    env = replace(case.env, **changes)  # type: ignore[arg-type]  # fields of Environment
    return Case(env, case.call, predict_sdpa(case.call, env))
