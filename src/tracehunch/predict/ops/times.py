"""How long kernels that move memory take: by family, from the bytes that they move."""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final, cast

from tracehunch.hardware import Gpu
from tracehunch.predict.activities import TimeRange
from tracehunch.predict.ops.steps import Step

_MEGA: Final = 1e6  # bytes per second -> per microsecond
CACHED: Final = 0.6
"""Share of the second-level cache in which a kernel finds what it reads."""


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


def moving_us(step: Step, c: Mapping[str, float], gpu: Gpu) -> float:
    """Return microseconds: a start, the slower of bytes moved and items worked on, and what is serial."""
    cache = CACHED * (gpu.l2_bytes or 0)
    rate = c["share"] * gpu.bandwidth / _MEGA
    near = min(step.bytes, cache) / (rate * c["cached"])
    far = max(step.bytes - cache, 0) / rate
    items = step.items * c["item_ns"] / (gpu.sms * 1e3)
    return c["start_us"] + max(near + far, items) + c["serial_ns"] * step.serial / 1e3
