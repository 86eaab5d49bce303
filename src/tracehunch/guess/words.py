"""Words of facts that are text: what people write -> the fact's own word, and slips that would never hold."""

import difflib
from collections.abc import Mapping
from typing import Final

from tracehunch.errors import GuessError
from tracehunch.facts.sdpa import BACKENDS, NO_ATTENTION

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "sdpa.backend": (*BACKENDS, NO_ATTENTION),
    "tensor_cores": ("used", "idle", "mixed", "none"),
    "bound": ("compute", "memory", "overhead"),
    "dtype": ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8-e4m3", "fp8-e5m2", "int8"),
}
"""The usual words. Others are taken as they are (another number format), unless they are a slip of these."""

CLOSED: Final = frozenset({"tensor_cores", "bound"})
"""Keys whose fact has no other word."""

SYNONYMS: Final[Mapping[str, Mapping[str, str]]] = {
    "sdpa.backend": {
        "flash_attention": "flash",
        "efficient_attention": "efficient",
        "mem_efficient": "efficient",
        "cudnn_attention": "cudnn",
    },
    "dtype": {
        "float64": "fp64", "double": "fp64", "float32": "fp32", "float": "fp32", "float16": "fp16",
        "half": "fp16", "bfloat16": "bf16", "float8_e4m3fn": "fp8-e4m3", "float8_e5m2": "fp8-e5m2",
    },
}  # fmt: skip
"""As PyTorch says it -> as the fact says it."""

_SLIP: Final = 0.75


def fact_word(key: str, written: str) -> str:
    """Return the fact's word for what was written.

    Raises:
        GuessError: it is close to a known word, and not one, or the key has no other words.

    """
    plain = written.strip().lower().removeprefix("torch.")
    word = SYNONYMS.get(key, {}).get(plain, plain)
    known = CHOICES.get(key, ())
    if not known or written in known:
        return written
    if word in known:
        return word
    near = difflib.get_close_matches(word, known, n=1, cutoff=_SLIP)
    if near:
        raise GuessError(f"{written!r} is not known", "", f"did you mean {near[0]}?")
    if key in CLOSED:
        raise GuessError(f"{written!r} is not known", "", f"use {', '.join(known)}")
    return written
