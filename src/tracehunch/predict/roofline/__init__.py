"""Attention's work and time: FLOPs, least bytes, unfused steps, roofline, and a range of time per backend.

`work` counts, `steps` lists what an unfused attention moves, `bound` says what limits a call, `time` gives
the range. The model of time is fitted on measurements of one GPU (`fitted.toml`) and scaled to others.
"""

from tracehunch.predict.roofline.bound import Roofline, roofline
from tracehunch.predict.roofline.dims import AttentionDims
from tracehunch.predict.roofline.machine import Calibration, Ceilings, ceilings
from tracehunch.predict.roofline.steps import Step
from tracehunch.predict.roofline.time import (
    AttentionTime,
    Launched,
    NoEstimate,
    Timings,
    attention_time,
    timings,
)
from tracehunch.predict.roofline.work import AttentionWork, attention_work, causal_pairs, executed_flops

__all__ = [
    "AttentionDims",
    "AttentionTime",
    "AttentionWork",
    "Calibration",
    "Ceilings",
    "Launched",
    "NoEstimate",
    "Roofline",
    "Step",
    "Timings",
    "attention_time",
    "attention_work",
    "causal_pairs",
    "ceilings",
    "executed_flops",
    "roofline",
    "timings",
]
