"""Kernels per attention call: what every variant and backend puts on the GPU, forward and backward."""

from tracehunch.predict.attention.predict import VARIANTS, attention_steps, predict_attention

__all__ = ["VARIANTS", "attention_steps", "predict_attention"]
