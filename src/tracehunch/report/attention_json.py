"""The attention series as JSON: each variant's guess, and the object that ``look`` gives.

```
{"schema": "tracehunch/1",
 "attention": {
   "interrupted": false, "not_done": [variant names],
   "ceilings": {"copy_bandwidth": 4.27e12, "matmul_flops": {"bf16": 7.3e14}}   as measured; absent where not
   "variants": [{
     "name": "naive", "changed": "...", "label": "attn_fwd",
     "status": "ran" | "recorded" | "failed",
     "reason": "..."        why it failed, or why a recording stands in; absent if all went well
     "device": {"kind": "cuda" | "cpu", "name": "NVIDIA H200", "torch": "2.11.0+cu130", "recorded": true,
                "cudnn": 91900},                                         absent where it is not known
     "workload": {"batch": 8, "heads": 16, "kv_heads": 16, "seq": 1024, "head_dim": 64,
                  "dtype": "bfloat16", "causal": true},
     "guess": {"seal": "<sha256>", "claims": [CLAIM without "seen"], "context": {...}},
                            the textbook's, and the user's own
     "expert": {"seal", "claims", "context"} | {"raises": "the error it ends in"} | {"untold": "why not"}
     "misjudged": true      it was refused and the expert guessed it runs, or the other way round; else absent
     "verification": {"max_error": 0.01, "tolerance": 0.06, "passed": true}    absent where not checked
     "revealed": "...", "times_best": 18.4,
     "rank_undecided": true absent where the forwards can tell it from the best
     "trace": "path"        absent where it was not kept
     "look": {...}          as ``look --format json``; absent where it failed
   }],
   "surprises": [{"variant": "naive", "key": "copies", "scope": "attn_fwd", "who": ["textbook"],
                 "time_at_stake_us": 127.6}]
 }}                         the surprises of all variants: where the expert is wrong (but for times), then by
                            time at stake
```
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from tracehunch.attention.outcome import Outcome, Series, times_best
from tracehunch.attention.ranking import rank
from tracehunch.report.attention_ceilings import ceilings_object
from tracehunch.report.attention_glance import groups, revealed
from tracehunch.report.attention_headline import group_outcomes
from tracehunch.report.attention_surprises import surprises
from tracehunch.report.json_report import SCHEMA, Object, encode, look_object

if TYPE_CHECKING:
    from tracehunch.attention.expert import Expert
    from tracehunch.attention.outcome import Device
    from tracehunch.attention.verify import Verification
    from tracehunch.attention.workload import Workload
    from tracehunch.guess import Claim, Guess


def render(series: Series) -> bytes:
    """Write the series as indented JSON, UTF-8, ending in a newline."""
    return encode(series_object(series))


def series_object(series: Series) -> Object:
    """Describe the whole series under the schema's name."""
    times = times_best(series.outcomes)
    undecided = {one.variant.name for pair in groups(series) for one in _undecided(series, *pair)}
    return {
        "schema": SCHEMA,
        "attention": {
            "interrupted": series.interrupted,
            "not_done": series.skipped,
            **({} if series.calibration is None else {"ceilings": ceilings_object(series.calibration)}),
            "variants": [_variant(outcome, times, undecided) for outcome in series.outcomes],
            "surprises": [
                {
                    "variant": one.outcome.variant.name,
                    "key": one.surprise.claim.key,
                    "scope": one.surprise.claim.scope,
                    "who": one.who,
                    "time_at_stake_us": one.surprise.time_at_stake_us,
                }
                for one in surprises(series)
            ],
        },
    }


def _undecided(series: Series, device: Device, workload: Workload) -> tuple[Outcome, ...]:
    return rank(group_outcomes(series, device, workload)).undecided


def _variant(outcome: Outcome, times: dict[str, float], undecided: set[str]) -> Object:
    name = outcome.variant.name
    known: Object = {
        "expert": None if outcome.expert is None else _expert(outcome.expert),
        "misjudged": outcome.misjudged or None,
        "reason": outcome.reason or None,
        "verification": None if outcome.verification is None else _verification(outcome.verification),
        "revealed": revealed(outcome) or None,
        "times_best": times.get(name),
        "rank_undecided": name in undecided or None,
        "trace": None if outcome.trace is None else str(outcome.trace),
        "look": None if outcome.look is None else look_object(outcome.look),
    }
    return {
        "name": name,
        "changed": outcome.variant.changed,
        "label": outcome.variant.label,
        "status": outcome.status,
        "device": {key: value for key, value in asdict(outcome.device).items() if value is not None},
        "workload": asdict(outcome.workload),
        "guess": _guess(outcome.guess),
    } | {key: value for key, value in known.items() if value is not None}


def _expert(expert: Expert) -> Object:
    if expert.untold:
        return {"untold": expert.untold}
    return _guess(expert.guess) if expert.raises is None else {"raises": expert.raises}


def _guess(guess: Guess) -> Object:
    return {
        "seal": guess.seal,
        "claims": [_claim(claim) for claim in guess.claims],
        "context": dict(guess.context),
    }


def _claim(claim: Claim) -> Object:
    return {
        "key": claim.key,
        "relation": claim.relation,
        "expected": claim.expected,
        "unit": claim.unit,
        "scope": claim.scope,
        "who": claim.who,
        "why": claim.why,
        "confidence": claim.confidence,
    }


def _verification(verification: Verification) -> Object:
    """Without the error where it is no number, which JSON cannot say."""
    error = {"max_error": verification.max_error} if math.isfinite(verification.max_error) else {}
    return {"tolerance": verification.tolerance, "passed": verification.passed} | error
