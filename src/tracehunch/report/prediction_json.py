"""The prediction of attention as JSON.

```
{"schema": "tracehunch/1",
 "prediction": {
   "workload": {"batch": 8, "heads": 16, "kv_heads": 16, "seq": 1024, "head_dim": 64,
                "dtype": "bfloat16", "causal": true},
   "gpu": "H200 SXM", "torch": "2.13", "cudnn": 92000, "clock": "gpu" | "host",
   "variants": [{
     "name": "naive", "label": "attn_fwd",
     "predicted": {"backend", "kernels", "copies", "memsets", "raises", "gpu_time_us", "low_us", "high_us",
                   "flops", "hbm_bytes", "bound", "bwd_us", "bwd_low_us", "bwd_high_us"}
                            what cannot be told is absent
     "confidence": {"counts": "high", "time": "medium"},
     "dominant": [{"op": "aten::masked_fill", "share": 0.433}]   of the GPU's time; empty where not known
     "kernels": [{"name": piece of the name or "", "library", "algorithm", "unit", "dtype", "op"}],
     "refused": {"flash": ["attn_mask given; ..."]},
     "reasons": ["..."],
     "hazards": [{"id", "kind", "severity", "words", "do", "links"}]
   }]
 }}
```
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from tracehunch.predict.bulk import plain
from tracehunch.predict.forecast import shares
from tracehunch.predict.roofline import AttentionTime
from tracehunch.report.json_report import SCHEMA, Object, encode
from tracehunch.report.prediction import reasons, refused

if TYPE_CHECKING:
    from tracehunch.predict.activities import KernelGuess
    from tracehunch.predict.sdpa import Hazard
    from tracehunch.report.prediction import Expected, Prediction


_DIGITS: Final = 4  # of a share


def render(prediction: Prediction) -> bytes:
    """Write the prediction as indented JSON, UTF-8, ending in a newline."""
    env = prediction.env
    return encode(
        {
            "schema": SCHEMA,
            "prediction": {
                "workload": asdict(prediction.workload),
                "gpu": prediction.gpu_name,
                "torch": env.torch_name,
                "cudnn": env.cudnn,
                "clock": prediction.clock,
                "variants": [_variant(one) for one in prediction.expected],
            },
        }
    )


def _variant(one: Expected) -> Object:
    found = one.forecast
    sure: Object = {"counts": found.forward.confidence}
    if isinstance(found.time, AttentionTime):
        sure["time"] = found.time.confidence
    made: Object = {
        "name": one.variant.name,
        "label": one.variant.label,
        "predicted": plain(found),
        "confidence": sure,
        "dominant": [{"op": op, "share": round(part, _DIGITS)} for op, part in shares(found.forward)],
    }
    if found.forward.kernels is not None:
        made["kernels"] = [_kernel(kernel) for kernel in found.forward.kernels]
    return made | {
        "refused": {} if found.sdpa is None else refused(one.variant.name, found.sdpa),
        "reasons": reasons(one),
        "hazards": [_hazard(hazard) for hazard in one.hazards],
    }


def _kernel(kernel: KernelGuess) -> Object:
    return {
        "name": kernel.hint,
        "library": kernel.library,
        "algorithm": kernel.algorithm,
        "unit": kernel.unit,
        "dtype": kernel.dtype,
        "op": kernel.op,
    }


def _hazard(hazard: Hazard) -> Object:
    return {
        "id": hazard.id,
        "kind": hazard.kind,
        "severity": hazard.severity,
        "words": hazard.words,
        "do": hazard.todo,
        "links": hazard.links,
    }
