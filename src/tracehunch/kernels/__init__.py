"""GPU kernel names to identities: rules as data, one classifier."""

from tracehunch.kernels.explain import explain
from tracehunch.kernels.hints import launch_hints, vendor_hint
from tracehunch.kernels.identity import (
    COPY_ALGORITHMS,
    UNCLASSIFIED,
    Identity,
    classify,
    classify_activity,
    is_copy_kernel,
)

__all__ = [
    "COPY_ALGORITHMS",
    "UNCLASSIFIED",
    "Identity",
    "classify",
    "classify_activity",
    "explain",
    "is_copy_kernel",
    "launch_hints",
    "vendor_hint",
]
