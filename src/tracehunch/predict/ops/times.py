"""How long kernels that move memory take: by family, from the bytes that they move."""

import math
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final, cast

from tracehunch.hardware import Gpu
from tracehunch.predict.activities import TimeRange
from tracehunch.predict.ops.steps import Step

_MEGA: Final = 1e6  # bytes per second -> per microsecond
CACHED: Final = 0.7
"""Share of the second-level cache up to which a kernel finds what it reads there; at twice as much, nothing.
Others write the rest between the one that makes a tensor and the one that reads it."""


@lru_cache(maxsize=1)
def families() -> Mapping[str, Mapping[str, float]]:
    """Return the coefficients of each family."""
    table = tomllib.loads((files(__package__) / "times.toml").read_text(encoding="utf-8"))
    return cast("Mapping[str, Mapping[str, float]]", table["families"])


def step_time(step: Step, gpu: Gpu) -> TimeRange:
    """Return the time of one kernel, copy or memset."""
    c = families()[step.family]
    us = moving_us(step, c, gpu)
    return TimeRange(us * c["low"], us, us * c["high"])


def found_in_cache(moved: int, gpu: Gpu) -> float:
    """Return which part of the bytes that a kernel moves is in the second-level cache."""
    room = CACHED * (gpu.l2_bytes or 0)
    return min(max(2 - moved / room, 0.0), 1.0) if room else 0.0


def moving_us(step: Step, c: Mapping[str, float], gpu: Gpu) -> float:
    """Return microseconds: a start, the slower of bytes moved and items worked on, and what is serial.

    Loads that wait for each other take `far_ns` more each where the second-level cache does not have them;
    other threads work meanwhile, so that the longer of both counts most.
    """
    rate = c["share"] * gpu.bandwidth / _MEGA
    found = found_in_cache(step.bytes, gpu)
    near, far = found * step.bytes / (rate * c["cached"]), (1 - found) * step.bytes / rate
    items = step.items * c["item_ns"] / (gpu.sms * 1e3)
    waiting = (c["serial_ns"] + (1 - found) * c.get("far_ns", 0.0)) * step.loads / 1e3
    return c["start_us"] + math.hypot(max(near + far, items), waiting) + c["serial_ns"] * step.serial / 1e3
