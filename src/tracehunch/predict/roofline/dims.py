"""The sizes of one attention call, and the data types it comes in."""

from dataclasses import dataclass
from typing import Final, Literal

from tracehunch.errors import GuessError
from tracehunch.predict.ops.dtypes import dtype_word, size_of

Backend = Literal["naive", "naive_inplace", "math", "flash", "efficient", "cudnn"]

FUSED: Final = ("flash", "efficient", "cudnn")
"""Backends of one kernel, which never write the scores."""

UNFUSED: Final = ("naive", "naive_inplace", "math")
"""Backends that write the scores to memory, one operation after another."""

TIMED_DTYPES: Final = ("bf16", "fp16", "fp32")


@dataclass(frozen=True, slots=True)
class AttentionDims:
    """Sizes of q (batch, heads, queries, head_dim), k (batch, kv_heads, keys, head_dim), v (..., value_dim).

    `kv_heads` and `value_dim` are those of q where they are not given.
    """

    batch: int
    heads: int
    queries: int
    keys: int
    head_dim: int
    kv_heads: int = 0
    value_dim: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kv_heads", self.kv_heads or self.heads)
        object.__setattr__(self, "value_dim", self.value_dim or self.head_dim)
        for name in ("batch", "heads", "kv_heads", "queries", "keys", "head_dim", "value_dim"):
            if getattr(self, name) < 1:
                raise GuessError(f"{name} {getattr(self, name)} is no size", "", "it must be at least 1")
        if self.heads % self.kv_heads:
            raise GuessError(
                f"{self.heads} heads cannot share {self.kv_heads} key/value heads",
                "every key/value head serves the same number of query heads",
            )

    @property
    def groups(self) -> int:
        """Query heads that share a key/value head."""
        return self.heads // self.kv_heads

    @property
    def scores(self) -> int:
        """Elements of the score matrices (batch, heads, queries, keys)."""
        return self.batch * self.heads * self.queries * self.keys

    @property
    def q_elements(self) -> int:
        """Elements of q."""
        return self.batch * self.heads * self.queries * self.head_dim

    @property
    def k_elements(self) -> int:
        """Elements of k, before its heads are repeated."""
        return self.batch * self.kv_heads * self.keys * self.head_dim

    @property
    def v_elements(self) -> int:
        """Elements of v, before its heads are repeated."""
        return self.batch * self.kv_heads * self.keys * self.value_dim

    @property
    def out_elements(self) -> int:
        """Elements of the output (batch, heads, queries, value_dim)."""
        return self.batch * self.heads * self.queries * self.value_dim

    def __str__(self) -> str:
        return f"({self.batch},{self.heads},{self.queries}x{self.keys},{self.head_dim})"


@dataclass(frozen=True, slots=True)
class Case:
    """What the model of time is asked: one forward or backward of a variant; `dtype` as a short word."""

    backend: str
    dims: AttentionDims
    dtype: str
    causal: bool
    backward: bool = False

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
