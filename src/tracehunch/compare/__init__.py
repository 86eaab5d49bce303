"""Two traces held against each other: what became slower or faster, what came and went, and why.

Every number is per call of a scope and stands with its spread over the calls; what differs by less than that
is the same within noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tracehunch.compare.contents import contents_of
from tracehunch.compare.environment import compare_environments
from tracehunch.compare.findings import compare_findings
from tracehunch.compare.model import Change, Diff, ScopeDiff, ScopePair
from tracehunch.compare.notes import clock_note, notes_of, unlike_note
from tracehunch.compare.recording import is_real, other_ranks
from tracehunch.compare.regressions import regressions_of
from tracehunch.compare.scope_diff import diff_facts, diff_scope
from tracehunch.compare.scopes import match_scopes
from tracehunch.compare.untold import untold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.contents import Contents
    from tracehunch.compare.environment import EnvironmentDiff
    from tracehunch.verdict import Finding, Look

__all__ = ["Change", "Diff", "ScopeDiff", "ScopePair", "diff"]

_DETAILED: Final = ("annotation", "step", "whole")
"""Kinds of scopes whose contents are compared; of frameworks' and modules' only the facts are."""

_NEARLY_ALL: Final = 0.9
"""Share of the longest scope's time from which on an annotation stands for it."""

_UNCOVERED: Final = 0.05
"""Share of a trace's time outside all annotations and steps from which on the whole is compared, too."""


def diff(before: Look, after: Look, given: Sequence[tuple[str, str]] = ()) -> Diff:
    """Compare two traces; ``given`` names scopes that are to be compared whatever they are called.

    Raises:
        TracehunchError: a scope is given that its trace does not have.

    """
    environment = compare_environments(before.facts.tree.trace, after.facts.tree.trace)
    pairs, only_before, only_after = match_scopes(before.facts, after.facts, given)
    new, gone, grown = compare_findings(before, after, pairs)
    scopes = _scopes(before, after, pairs, (gone, new), environment) if environment.same_kind else []
    compared = [scope.pair for scope in scopes]
    notes = [
        unlike_note(before.facts, after.facts, scopes),
        *notes_of(before.facts, after.facts, compared, environment),
        clock_note(scopes),
    ]
    made = Diff(
        before=before,
        after=after,
        environment=environment,
        scopes=tuple(sorted(scopes, key=_rank)),
        only_before=tuple(only_before),
        only_after=tuple(only_after),
        notes=tuple(note for note in notes if note),
        cannot_tell=tuple(untold(before.facts, after.facts, scopes, environment)),
    )
    if not environment.same_kind:
        return made
    traces = before.facts.tree.trace, after.facts.tree.trace
    worse = regressions_of(
        scopes,
        new,
        grown,
        environment,
        host_compares=is_real(*traces, 1.0),
        same_rank=not other_ranks(*traces),
    )
    return replace(made, new=new, gone=gone, grown=grown, regressions=worse)


def _rank(scope: ScopeDiff) -> tuple[int, float]:
    """Sort key: the user's own scopes first; by the time that all calls together gained or lost."""
    kinds = ("annotation", "step", "whole", "framework", "module")
    total = abs(scope.delta_us) * len(scope.pair.after.scope.calls)
    return kinds.index(scope.pair.after.scope.kind), -total


def _scopes(
    before: Look,
    after: Look,
    pairs: Sequence[ScopePair],
    findings: tuple[Sequence[Finding], Sequence[Finding]],
    environment: EnvironmentDiff,
) -> list[ScopeDiff]:
    detailed = [pair for pair in pairs if pair.after.scope.kind in _DETAILED]
    trees = before.facts.tree, after.facts.tree
    on_gpu = all(environment.on_gpu)
    first = contents_of(before.facts, [pair.before for pair in detailed], on_gpu=on_gpu)
    second = contents_of(after.facts, [pair.after for pair in detailed], on_gpu=on_gpu)
    leading = _leading(detailed)
    found = [
        diff_scope(
            pair, trees, sides, findings=findings, environment=environment, with_rhythm=pair is leading
        )
        for pair, *sides in zip(detailed, first, second, strict=True)
    ]
    rest = [pair for pair in pairs if pair.after.scope.kind not in _DETAILED]
    found += [ScopeDiff(pair, diff_facts(pair), ()) for pair in rest]
    uncovered = max(_uncovered(detailed, contents) for contents in (first, second)) if detailed else 1.0
    if uncovered < _UNCOVERED:
        found = [scope for scope in found if scope.pair.after.scope.kind != "whole"]
    return found


def _leading(pairs: Sequence[ScopePair]) -> ScopePair | None:
    """Return the scope whose rhythm all share: the one of most time, an annotation rather than a step."""
    sizes = {id(pair): _size(pair) for pair in pairs if pair.after.scope.kind != "whole"}
    most = max(sizes.values(), default=0.0)
    large = [pair for pair in pairs if sizes.get(id(pair), 0.0) > _NEARLY_ALL * most]
    return min(large, key=lambda pair: _DETAILED.index(pair.after.scope.kind), default=None)


def _size(pair: ScopePair) -> float:
    """Time of all calls: on the GPU, else on the host."""
    for key in ("gpu_time", "wall_time"):
        value = pair.after.value(key)
        if isinstance(value, int | float) and value:
            return float(value * len(pair.after.scope.calls))
    return 0.0


def _uncovered(pairs: Sequence[ScopePair], contents: Sequence[Contents]) -> float:
    """Share of the time that only the whole trace owns."""
    totals = [
        sum(use.time.value for use in of_scope.uses) * len(pair.after.scope.calls)
        for pair, of_scope in zip(pairs, contents, strict=True)
    ]
    whole = [total for pair, total in zip(pairs, totals, strict=True) if pair.after.scope.kind == "whole"]
    return sum(whole) / sum(totals) if sum(totals) else 0.0
