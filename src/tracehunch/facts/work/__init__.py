"""What has to be computed and moved for one call of an op: FLOPs and the least bytes, from its inputs.

Nothing here knows of traces, tensors' contents or GPUs: formulas over shapes. FLOPs are those of matrix
products, convolutions and attention, a multiply and an add as two; whatever else an op computes counts as
none. The least bytes read each input once and write each output once; what is expanded (stride 0) lies in
memory once. Caches change neither.
"""

from tracehunch.facts.work.attention import (
    AttentionDims,
    AttentionWork,
    attention_work,
    causal_pairs,
    lower_right_pairs,
)
from tracehunch.facts.work.bound import Limit, limit
from tracehunch.facts.work.convolution import convolution_flops, convolved_size
from tracehunch.facts.work.dtypes import ELEMENT_BYTES, floating_type
from tracehunch.facts.work.inputs import Call, NotRecorded, Operand, call_of
from tracehunch.facts.work.ops import work_of
from tracehunch.facts.work.products import product_bytes, product_flops
from tracehunch.facts.work.work import Work

__all__ = [
    "ELEMENT_BYTES",
    "AttentionDims",
    "AttentionWork",
    "Call",
    "Limit",
    "NotRecorded",
    "Operand",
    "Work",
    "attention_work",
    "call_of",
    "causal_pairs",
    "convolution_flops",
    "convolved_size",
    "floating_type",
    "limit",
    "lower_right_pairs",
    "product_bytes",
    "product_flops",
    "work_of",
]
