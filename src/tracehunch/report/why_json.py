"""Why each SDPA call of a trace ran on its backend, as JSON; what cannot be told is absent.

```
{"schema": "tracehunch/1",
 "why": {
   "calls": {"surprise": 3, "depends": 0, "as_predicted": 15, "cannot_tell": 0, "traced": 0},
   "groups": [{
     "verdict": "surprise" | "depends" | "as predicted" | "cannot tell", "unknown": "why it cannot be told",
     "scope": "sdpa_fwd", "calls": 3, "origin": "program" | "compiled" | "direct", "evidence": [events],
     "gpu_time_us", "cpu_time_us": medians of a call,
     "call": {"q": {"shape", "stride", "dtype"}, "k", "v", "mask", "is_causal", "enable_gqa", "dropout",
              "scale", "requires_grad": true | false, "left_open": ["mask gradient"]},
     "on": "NVIDIA H200", "torch": "not recorded: one of 2.9 to 2.14", "ran": "math",
     "predicted": {"2.9": ["cudnn"], ...}         by torch version, each reading's choice
     "shown": "2.14"                              the version that the following is of
     "chosen": "cudnn", "why": "...", "raises": "...", "order": ["cudnn", ...],
     "backends": [{"backend", "accepted", "unknown",
                   "refusals": [{"check", "words", "do", "changes", "source"}],
                   "expected_us": [low, mid, high]}],
     "may_be": [{"id": "pinned", "words": "..."}],
     "hazards": [{"id", "kind", "severity", "confidence", "versions", "words", "do", "links"}]
   }]
 }}
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.predict.traced import VERDICTS, causes, traced_hazards, triangles
from tracehunch.predict.traced.times import expected_times
from tracehunch.report.json_report import SCHEMA, Object, encode
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.predict.roofline import AttentionTime
    from tracehunch.predict.sdpa import BackendAnswer, SdpaCall, TensorSpec
    from tracehunch.predict.traced import Case, Explained, Group, TracedHazard
    from tracehunch.tree import Tree

_DIGITS = 3  # of a microsecond


def render(explained: Explained, tree: Tree) -> bytes:
    """Write the explanation as indented JSON, UTF-8, ending in a newline."""
    made = triangles(tree)
    backward = any("attention_backward" in name for name in tree.trace.names)
    counts = {verdict.replace(" ", "_"): explained.count(verdict) for verdict in VERDICTS}
    groups = [
        _group(group, tree) | {"hazards": _hazards(traced_hazards(group, made, has_backward=backward))}
        for group in explained.groups
    ]
    return encode(
        {"schema": SCHEMA, "why": {"calls": {**counts, "traced": explained.traced}, "groups": groups}}
    )


def _group(group: Group, tree: Tree) -> Object:
    first = group.calls[0]
    made: Object = {
        "verdict": group.verdict,
        "scope": printable(group.scope),
        "calls": len(group.calls),
        "origin": first.origin,
        "evidence": tree.trace.events([call.row for call in group.calls]),
        "cpu_time_us": round(group.cpu_us, _DIGITS),
    }
    if group.gpu_us is not None:
        made["gpu_time_us"] = round(group.gpu_us, _DIGITS)
    for key, value in (
        ("unknown", group.unknown),
        ("on", group.setting.hardware),
        ("torch", group.setting.torch),
        ("ran", group.ran),
    ):
        if value:
            made[key] = printable(value)
    if first.recorded is not None:
        made["call"] = _call(first.recorded.call) | {"left_open": first.recorded.open}
        if first.grad is not None:
            made["call"]["requires_grad"] = first.grad
    case = group.shown
    return made if case is None else made | _case(group, case)


def _case(group: Group, case: Case) -> Object:
    picked: dict[str, list[str]] = {}
    for one in group.cases:
        chosen = picked.setdefault(one.env.torch_name, [])
        if one.prediction.chosen is not None and one.prediction.chosen not in chosen:
            chosen.append(one.prediction.chosen)
    prediction, times = case.prediction, expected_times(case)
    made: Object = {"predicted": picked, "shown": case.env.torch_name, "order": prediction.order}
    for key, value in (("chosen", prediction.chosen), ("why", prediction.why), ("raises", prediction.raises)):
        if value:
            made[key] = value
    made["backends"] = [_backend(answer, times.get(answer.backend)) for answer in prediction.answers]
    if group.verdict == "surprise":
        made["may_be"] = [{"id": cause.id, "words": cause.words} for cause in causes(group)]
    return made


def _backend(answer: BackendAnswer, time: AttentionTime | None) -> Object:
    made: Object = {"backend": answer.backend}
    if answer.accepted is not None:
        made["accepted"] = answer.accepted
    if answer.unknown:
        made["unknown"] = answer.unknown
    if answer.rejections:
        made["refusals"] = [
            {
                "check": one.check,
                "words": one.words,
                "do": one.todo,
                "changes": one.changes,
                "source": one.source,
            }
            for one in answer.rejections
        ]
    if time is not None:
        made["expected_us"] = [round(value, _DIGITS) for value in (time.low_us, time.mid_us, time.high_us)]
    return made


def _call(call: SdpaCall) -> Object:
    made: Object = {"q": _tensor(call.q), "k": _tensor(call.k), "v": _tensor(call.v)}
    if call.mask is not None:
        made["mask"] = _tensor(call.mask)
    made |= {"is_causal": call.is_causal, "enable_gqa": call.enable_gqa, "dropout": call.dropout}
    return made if call.scale is None else made | {"scale": call.scale}


def _tensor(given: TensorSpec) -> Object:
    return {"shape": given.shape, "stride": given.stride, "dtype": given.dtype}


def _hazards(found: Sequence[TracedHazard]) -> list[Object]:
    return [_hazard(one) for one in found]


def _hazard(known: TracedHazard) -> Object:
    hazard = known.hazard
    made: Object = {
        "id": hazard.id,
        "kind": hazard.kind,
        "severity": known.severity,
        "confidence": known.confidence,
        "words": hazard.words,
        "do": hazard.todo,
        "links": hazard.links,
    }
    return made | {"versions": known.versions} if known.versions else made
