"""The schedule of a recording: which makes sense, and what PyTorch need not say about it."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator


def refuse_counts(steps: object, *passing: object) -> None:
    """Make sure that a schedule makes sense: how many steps are recorded, and how many pass before.

    Raises:
        CaptureError: it does not.

    """
    if not all(isinstance(one, int) and one >= 0 for one in (steps, *passing)) or not steps:
        what = f"cannot record {steps!r} steps after {' and '.join(map(repr, passing))}"
        raise CaptureError(what, "", "record at least one step, skip and warm up none or more")


def only_first(finished: int) -> str:
    """Say that of all steps that ended the first alone was recorded, "" where there are none."""
    match finished:
        case 0:
            return ""
        case 1:
            return "it ended after 1 step, which is what was recorded"
    return f"only the first of {finished} steps was recorded"


@contextmanager
def without_advice() -> Iterator[None]:
    """Keep away PyTorch's warnings on schedules: what they advise is done, or was decided against."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=r"(?s).*(Profiler clears events|won't be using (a )?warmup)"
        )
        yield
