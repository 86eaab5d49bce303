"""A run over time as JSON, schema "tracehunch/1"; findings are the objects of ``look``.

```
{"schema": "tracehunch/1",
 "over_time": {
  "false_alarms": 0.01,
  "runs": [{"rank": 0 | absent, "process": "...", "tested": 12,
            "cycles": [{"source", "start_ns", "end_ns", "steps": [first, last] | absent,
                        "calls": {"scope": n}}],
            "changes": [{"scope", "kind": "step|trend|turns", "severity", "cost_us" | absent,
                         "from": PLACE | absent, "facts": [DRIFT + SERIES],
                         "causes": [{"id", "text", "confidence"}],
                         "around": [{"scope", "cost_us"}],
                         "findings": {"came": [FINDING], "went": [FINDING]}}],
            "facts": [DRIFT of every fact that is not constant], "constant": {"scope": ["key", ...]},
            "warnings": [{"code", "message"}]}],
  "left_out": ["..."], "unread": [{"source", "why"}], "warnings": [{"code", "message"}]}}
PLACE = {"cycle": from 1, "call": from 1, "step": n | absent, "start_ns"}
DRIFT = {"scope", "key", "kind": "step|trend|turns|warm-up|one-off|varies|beside-collectives|too-few",
         "levels": [{"value", "calls", "from": PLACE, "to": PLACE}], "at": [PLACE],
         "every", "slope", "p", "share"}
SERIES = {"series": {"by": "step|call", "at": [n, ...], "values": [v, ...]} | absent}
```
Keys are those of facts, times with ``_us``; beside them ``outside_us`` (a call's time in no op),
``gpu_time_without_collectives_us``, ``gpu_time_beside_no_collective_us`` (of kernels that run beside none in
nearly all calls), ``collective_time_us`` (of "beside-collectives"), ``grid_blocks`` (thread blocks),
``input_elements``, ``kept_bytes``,
``names`` (how many different kernels or leaf ops ran, and a digest of their names) and
``calls`` (of the scope in a step). ``cost_us`` is later less earlier time of a call, of a trend last less
first. ``p`` is before correction for the number of tests; absent where the values are exact. A series has up
to 60 values over the run, each the median of the calls from ``at`` on; texts have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.report.json_report import SCHEMA, encode, finding_object, json_text, json_value
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.over_time.model import Cycle, Drift, Level, OverTime, Place, Run, Shift
    from tracehunch.trace.model import Notice

Object = dict[str, Any]


def render(report: OverTime) -> bytes:
    """Return the report as indented JSON in UTF-8."""
    return encode({"schema": SCHEMA, "over_time": over_time_object(report)})


def over_time_object(report: OverTime) -> Object:
    """Return everything a report over time says."""
    return {
        "false_alarms": report.false_alarms,
        "runs": [_run(run) for run in report.runs],
        "left_out": [json_text(one) for one in report.left_out],
        "unread": [{"source": json_text(one.source), "why": json_text(one.why)} for one in report.unread],
        "warnings": _notices(report.notices),
    }


def _run(run: Run) -> Object:
    constant: dict[str, list[str]] = {}
    for drift in run.drifts:
        if drift.kind == "constant":
            constant.setdefault(json_text(drift.scope), []).append(_key(drift))
    return {
        **({} if run.rank is None else {"rank": run.rank}),
        "process": json_text(run.cycles[0].process),
        "tested": run.tried,
        "cycles": [_cycle(cycle) for cycle in run.cycles],
        "changes": [_shift(shift) for shift in run.shifts],
        "facts": [_drift(drift) for drift in run.drifts if drift.kind != "constant"],
        "constant": constant,
        "warnings": _notices(run.notices),
    }


def _notices(notices: Sequence[Notice]) -> list[Object]:
    return [{"code": one.code, "message": json_text(one.message)} for one in notices]


def _cycle(cycle: Cycle) -> Object:
    steps = [int(n) for one in cycle.scopes.values() for n in one.step.tolist() if n != ABSENT]
    return {
        "source": json_text(cycle.source),
        "start_ns": cycle.start_ns,
        "end_ns": cycle.end_ns,
        **({"steps": [min(steps), max(steps)]} if steps else {}),
        "calls": {json_text(name): len(one) for name, one in cycle.scopes.items()},
    }


def _shift(shift: Shift) -> Object:
    return {
        "scope": json_text(shift.scope),
        "kind": shift.kind,
        "severity": shift.severity,
        **({} if shift.cost_us is None else {"cost_us": shift.cost_us}),
        **({} if shift.place is None else {"from": _place(shift.place)}),
        "facts": [{**_drift(drift), **_series(drift)} for drift in shift.drifts],
        "causes": [
            {"id": one.id, "text": json_text(one.text), "confidence": one.confidence} for one in shift.causes
        ],
        "around": [
            {"scope": json_text(name), **({} if cost is None else {"cost_us": cost})}
            for name, cost in shift.also
        ],
        "findings": {
            "came": [finding_object(one) for one in shift.came],
            "went": [finding_object(one) for one in shift.went],
        },
    }


def _drift(drift: Drift) -> Object:
    known = {"every": drift.every, "slope": drift.slope, "p": drift.p, "share": drift.share}
    return {
        "scope": json_text(drift.scope),
        "key": _key(drift),
        "kind": drift.kind,
        "levels": [_level(level) for level in drift.levels],
        "at": [_place(place) for place in drift.at],
        **{name: value for name, value in known.items() if value is not None},
    }


def _series(drift: Drift) -> Object:
    if not drift.series_at:
        return {}
    values = list(drift.series)
    return {"series": {"by": drift.series_by, "at": list(drift.series_at), "values": values}}


def _key(drift: Drift) -> str:
    return f"{drift.key}_us" if drift.unit == "us" else drift.key


def _level(level: Level) -> Object:
    return {
        "value": json_value(level.value),
        "calls": level.calls,
        "from": _place(level.first),
        "to": _place(level.last),
    }


def _place(place: Place) -> Object:
    step = {} if place.step is None else {"step": place.step}
    return {"cycle": place.cycle + 1, "call": place.call, **step, "start_ns": place.start_ns}
