"""A comparison as JSON, schema "tracehunch/1"; traces, scopes and findings are the objects of ``look``.

```
{"schema": "tracehunch/1",
 "before": {"trace": TRACE}, "after": {"trace": TRACE},
 "environment": {"times_compare": true,
                 "entries": [{"name", "group", "before", "after", "status", "decides"}]},
 "scopes": [{"before": SCOPE, "after": SCOPE, "matched": "name|position|given",
             "ranked_by": "gpu_time_us|wall_time_us|period_us", "delta_us": -125.4,
             "facts": {"gpu_time_us": {"before", "after", "outcome": OUTCOME}},
             "period_us": TIME, "outside_us": TIME,
             "changes": [CHANGE], "host": [CHANGE]}],
 "only_before": [SCOPE], "only_after": [SCOPE],
 "findings": {"new": [FINDING], "gone": [FINDING], "grown": [{"before": FINDING, "after": FINDING}]},
 "regressions": [{"severity", "text"}], "notes": ["..."], "cannot_tell": [{"key", "scope", "reason"}]}
OUTCOME = "same|noise|more|less|other|unknown"
TIME = {"before", "after", "spread": {"before": [low, high], "after": [low, high]}, "outcome": OUTCOME}
CHANGE = {"kind": "went|appeared|fewer|more|slower|faster|kernel|replaced|fused|unfused", "at": [ops],
          "delta_us", "noise", "before": [USE], "after": [USE], "causes": [{"id", "text", "confidence"}],
          "evidence": {"before": [events], "after": [events]}}
USE = {"name", "kind", "path": [ops], "per_call", "time_us", "spread_us": [low, high],
       "library", "algorithm", "unit", "dtype"}
```
Times are per call of the scope; ``delta_us`` is after less before. ``period_us`` is from one call to the
next, for the scope that leads; ``outside_us`` in no op and no runtime call. What cannot be known is absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.report.json_report import (
    SCHEMA,
    cannot_tell_object,
    encode,
    finding_object,
    json_text,
    json_value,
    scope_object,
    trace_object,
)

if TYPE_CHECKING:
    from tracehunch.compare.environment import Entry
    from tracehunch.compare.model import Cause, Change, Diff, FactChange, ScopeDiff, TimeChange, Use
    from tracehunch.tree import Tree
    from tracehunch.verdict import Look

Object = dict[str, Any]


def render(diff: Diff) -> bytes:
    """Return the comparison as indented JSON in UTF-8."""
    return encode(diff_object(diff))


def diff_object(diff: Diff) -> Object:
    """Return everything a comparison says."""
    before, after = diff.before.facts.tree, diff.after.facts.tree
    return {
        "schema": SCHEMA,
        "before": {"trace": _trace(diff.before)},
        "after": {"trace": _trace(diff.after)},
        "environment": {
            "times_compare": diff.environment.times_compare,
            "entries": [_entry(entry) for entry in diff.environment.entries],
        },
        "scopes": [_scope(scope, before, after) for scope in diff.scopes],
        "only_before": [scope_object(scope, before) for scope in diff.only_before],
        "only_after": [scope_object(scope, after) for scope in diff.only_after],
        "findings": {
            "new": [finding_object(finding) for finding in diff.new],
            "gone": [finding_object(finding) for finding in diff.gone],
            "grown": [
                {"before": finding_object(change.before), "after": finding_object(change.after)}
                for change in diff.grown
                if change.before is not None and change.after is not None
            ],
        },
        "regressions": [{"severity": one.severity, "text": one.text} for one in diff.regressions],
        "notes": list(diff.notes),
        "cannot_tell": [cannot_tell_object(unknown) for unknown in diff.cannot_tell],
    }


def _trace(look: Look) -> Object:
    return trace_object(look.facts.tree, look.facts.counts)


def _entry(entry: Entry) -> Object:
    sides = {side: text for side, text in (("before", entry.before), ("after", entry.after)) if text}
    known = {side: json_text(text) for side, text in sides.items()}
    return {
        "name": json_text(entry.name),
        "group": entry.group,
        **known,
        "status": entry.status,
        "decides": entry.decides,
    }


def _scope(scope: ScopeDiff, before: Tree, after: Tree) -> Object:
    return {
        "before": scope_object(scope.pair.before, before),
        "after": scope_object(scope.pair.after, after),
        "matched": scope.pair.matched,
        "ranked_by": f"{scope.time_key}_us",
        "delta_us": scope.delta_us,
        "facts": {_key(fact): _fact(fact) for fact in scope.facts},
        **{
            name: _time(change)
            for name, change in (("period_us", scope.period), ("outside_us", scope.outside))
            if change is not None
        },
        "changes": [_change(change) for change in scope.changes],
        "host": [_change(change) for change in scope.host],
    }


def _key(fact: FactChange) -> str:
    return f"{fact.key}_us" if fact.unit == "us" else fact.key


def _fact(fact: FactChange) -> Object:
    sides = {"before": fact.before, "after": fact.after}
    known = {name: json_value(one.value) for name, one in sides.items() if one is not None}
    return {**known, "outcome": fact.outcome}


def _time(change: TimeChange) -> Object:
    sides = {"before": change.before, "after": change.after}
    return {
        **{name: one.value for name, one in sides.items()},
        "spread": {name: [one.low, one.high] for name, one in sides.items()},
        "outcome": change.outcome,
    }


def _change(change: Change) -> Object:
    return {
        "kind": change.kind,
        "at": [json_text(op) for op in change.at],
        "delta_us": change.delta_us,
        "noise": change.is_noise,
        "before": [_use(use) for use in change.before],
        "after": [_use(use) for use in change.after],
        "causes": [_cause(cause) for cause in change.causes],
        "evidence": {"before": change.evidence_before, "after": change.evidence_after},
    }


def _use(use: Use) -> Object:
    identity = use.identity
    known = {"library": "", "algorithm": "", "unit": "", "dtype": ""}
    if identity is not None:
        known = {name: getattr(identity, name) or "" for name in known}
    return {
        "name": json_text(use.name),
        "kind": use.kind,
        "path": [json_text(op) for op in use.path],
        "per_call": use.per_call,
        "time_us": use.time.value,
        "spread_us": [use.time.low, use.time.high],
        **{name: text for name, text in known.items() if text},
    }


def _cause(cause: Cause) -> Object:
    return {"id": cause.id, "text": json_text(cause.text), "confidence": cause.confidence}
