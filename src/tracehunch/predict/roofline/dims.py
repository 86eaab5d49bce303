"""What the model of time is asked about one attention call, and the data types that it knows."""

from dataclasses import dataclass
from typing import Final, Literal

from tracehunch.facts.work import AttentionDims
from tracehunch.predict.ops.dtypes import dtype_word, size_of

__all__ = [
    "FUSED",
    "TIMED_DTYPES",
    "UNFUSED",
    "AttentionDims",
    "Backend",
    "Case",
    "element_bytes",
]

Backend = Literal["naive", "naive_inplace", "math", "flash", "efficient", "cudnn"]

FUSED: Final = ("flash", "efficient", "cudnn")
"""Backends of one kernel, which never write the scores."""

UNFUSED: Final = ("naive", "naive_inplace", "math")
"""Backends that write the scores to memory, one operation after another."""

TIMED_DTYPES: Final = ("bf16", "fp16", "fp32")


@dataclass(frozen=True, slots=True)
class Case:
    """One forward or backward of a fused backend; `dtype` as a short word.

    `mask_bytes` are those of the additive mask that the kernel reads, 0 for none; `mask_ragged` is whether
    its rows start at no multiples of 16 bytes. `lower_right`: a causal triangle ends bottom right.
    """

    backend: str
    dims: AttentionDims
    dtype: str
    causal: bool
    backward: bool = False
    mask_bytes: int = 0
    mask_ragged: bool = False
    dropout: bool = False
    lower_right: bool = False

    @property
    def offset(self) -> int:
        """Keys that the first query of a causal call sees before its own."""
        return self.dims.keys - self.dims.queries if self.lower_right else 0

    @property
    def direction(self) -> str:
        """Forward or backward, as the model's tables have it."""
        return "backward" if self.backward else "forward"

    @property
    def family(self) -> str:
        """The name of a backend's kernels in the model's tables: float32 has its own."""
        return "efficient_fp32" if self.backend == "efficient" and self.dtype == "fp32" else self.backend


def element_bytes(dtype: str) -> int:
    """Bytes of one element; the type as torch, traces or kernel names write it."""
    return size_of(dtype_word(dtype))
