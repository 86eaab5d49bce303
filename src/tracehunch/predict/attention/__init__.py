"""Kernels per attention call: what every variant and backend puts on the GPU, forward and backward."""

from tracehunch.predict.attention.predict import (
    BY_HAND,
    VARIANTS,
    Run,
    activities_of,
    attention_parts,
    attention_run,
    pinned_to,
    predict_attention,
)
from tracehunch.predict.attention.program import Part

__all__ = [
    "BY_HAND",
    "VARIANTS",
    "Part",
    "Run",
    "activities_of",
    "attention_parts",
    "attention_run",
    "pinned_to",
    "predict_attention",
]
