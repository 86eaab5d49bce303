"""What a mask tensor and dropout add to a fused kernel's time: factors from few traces, with a wide range."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Extra:
    """Factors on the ends and the middle of a range, and where they come from."""

    low: float
    mid: float
    high: float
    source: str


_MASK: Final[Mapping[str, Extra]] = {
    "cudnn": Extra(1.5, 1.9, 2.3, "cuDNN with a mask tensor took 1.8 to 2.0 times as long on an H200"),
    "efficient": Extra(1.0, 1.3, 1.9, "efficient with a mask tensor was not measured"),
}

_DROPOUT: Final[Mapping[str, Extra]] = {
    "cudnn": Extra(1.6, 2.2, 2.8, "cuDNN with dropout took 2.2 times as long on an H200"),
    "flash": Extra(1.0, 1.4, 2.2, "flash with dropout was not measured"),
    "efficient": Extra(1.0, 1.4, 2.2, "efficient with dropout was not measured"),
}


def extras(backend: str, *, mask: bool, dropout: bool) -> tuple[Extra, ...]:
    """Return what applies to a fused backend, in any order."""
    tables = [table for table, wanted in ((_MASK, mask), (_DROPOUT, dropout)) if wanted]
    return tuple(table[backend] for table in tables if backend in table)
