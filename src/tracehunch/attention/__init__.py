"""The attention variants, in the order of the series: each changes one thing of the one before it.

A new variant is one file here, its import line, and its place in ``VARIANTS``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.attention.naive import NAIVE
from tracehunch.attention.naive_inplace import NAIVE_INPLACE
from tracehunch.attention.sdpa_auto import SDPA_AUTO
from tracehunch.attention.sdpa_cudnn import SDPA_CUDNN
from tracehunch.attention.sdpa_efficient import SDPA_EFFICIENT
from tracehunch.attention.sdpa_flash import SDPA_FLASH
from tracehunch.attention.sdpa_math import SDPA_MATH

if TYPE_CHECKING:
    from tracehunch.attention.variant import Variant

VARIANTS: Final[tuple[Variant, ...]] = (
    NAIVE,
    NAIVE_INPLACE,
    SDPA_MATH,
    SDPA_EFFICIENT,
    SDPA_FLASH,
    SDPA_CUDNN,
    SDPA_AUTO,
)
