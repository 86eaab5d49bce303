"""What was measured of attention's time on H200s (`tests/data/truth`), next to what is expected to run.

Three kinds: what a trace shows of one forward or backward (activities, no host in it), what recorded traces
show of fused attention ops, and medians of benchmarks (the host's launches included).
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracehunch.hardware import all_gpus
from tracehunch.predict.attention import activities_of, attention_parts
from tracehunch.predict.environment import environment
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline.dims import FUSED
from tracehunch.predict.roofline.machine import Machine
from tracehunch.predict.roofline.time import Launched
from tracehunch.predict.sdpa import SdpaCall, sdpa_call, tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracehunch.predict.attention import Part
    from tracehunch.predict.roofline.steps import Step

ROOT: Final = Path(__file__).resolve().parents[1]
TRUTH: Final = ROOT / "tests" / "data" / "truth"
ENVIRONMENT: Final = environment("h200", "2.11", 91900)
VARIANTS: Final = ("naive", "naive_inplace", "math", *FUSED)


@dataclass(frozen=True)
class Measured:
    """One measured time in us; `single` are its activities (name, us), none from benchmarks.

    `clock` is "gpu" for activities, "host" for benchmarks. `plain`: no mask tensor, no dropout, no shared
    heads, head dimensions that need no padding, as many keys as queries or one query.
    """

    variant: str
    call: SdpaCall
    backward: bool
    clock: str
    us: float
    source: str
    single: tuple[tuple[str, float], ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """What splits go by: all measurements of a shape are left out together."""
        return (*self.call.q.shape, *self.call.k.shape[1:3], self.call.v.shape[3])

    @property
    def asked(self) -> tuple[object, ...]:
        """What variants are compared on."""
        masked = None if self.call.mask is None else (self.call.mask.shape, self.call.mask.dtype)
        return (
            *self.shape, self.call.q.dtype, self.call.q.stride, self.call.is_causal, masked,
            self.call.dropout, self.backward, self.clock, self.source,
        )  # fmt: skip

    @property
    def plain(self) -> bool:
        """Whether nothing but kernels of the variant itself is expected."""
        q, k = self.call.q, self.call.k
        usual = self.call.mask is None and self.call.dropout == 0 and q.shape[1] == k.shape[1]
        return usual and q.shape[3] % 8 == 0 and (q.shape[2] in (1, k.shape[2]))

    @property
    def fused(self) -> bool:
        """Whether a fused kernel does it."""
        return self.variant in FUSED

    @property
    def direction(self) -> str:
        """Forward or backward."""
        return "backward" if self.backward else "forward"

    def parts(self) -> tuple[Part, ...]:
        """Return what is expected to run."""
        return _parts(self.variant, self.call, self.backward)

    def launched(self) -> Launched:
        """Return the same as the model of time takes it."""
        steps = tuple(step for part in self.parts() for step in part.steps)
        return Launched(self.variant, dtype_word(self.call.q.dtype), self.backward, steps)


@cache
def _parts(variant: str, call: SdpaCall, backward: bool) -> tuple[Part, ...]:  # a key
    return attention_parts(variant, call, ENVIRONMENT, backward=backward)


def rows(name: str) -> list[dict[str, Any]]:
    """Return the lines of a truth file."""
    with gzip.open(TRUTH / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def call_of(row: Mapping[str, Any]) -> SdpaCall:
    """Return the call of a line."""
    mask = None
    if row.get("mask") is not None:
        dtype = "bool" if row["mask"].startswith("bool") else row["dtype"]
        mask = tensor(tuple(row["mask_shape"]), dtype)
    heads, kv_heads = row["H"], row.get("Hk", row["H"])
    return sdpa_call(
        row["B"], heads, row["S"], row["D"], kv_heads=kv_heads, keys=row.get("Sk", row["S"]),
        value_dim=row.get("Dv", row["D"]), dtype=row["dtype"], layout=row.get("layout", "bhsd"), mask=mask,
        dropout=row.get("dropout", 0.0), is_causal=row["causal"], enable_gqa=kv_heads != heads,
        requires_grad=row.get("grad", False),
    )  # fmt: skip


@cache
def timing() -> tuple[Measured, ...]:
    """Return the benchmarks, forward and backward."""
    found = []
    for row in rows("sdpa_timing_h200"):
        for key, backward in (("fwd_ms", False), ("bwd_ms", True)):
            if row.get(key) is not None:
                us = 1e3 * row[key]
                found.append(Measured(row["backend"], call_of(row), backward, "host", us, "timing"))
    return tuple(found)


@cache
def activities() -> tuple[Measured, ...]:
    """Return what traces show of single forwards of each variant."""
    return tuple(
        _traced(row["variant"], call_of(row), row["activities"], "activities", backward=False)
        for row in rows("attention_activities_h200")
        if "activities" in row and row["variant"] in VARIANTS
    )


@cache
def more_activities() -> tuple[Measured, ...]:
    """Return the same of more calls: masks, shared heads, padding, dropout, backwards."""
    return tuple(
        _traced(row["variant"], call_of(row), row[direction], "more", backward=direction == "backward")
        for row in rows("attention_times_h200")[1:]
        for direction in ("forward", "backward")
        if isinstance(row.get(direction), list)
    )


def _traced(
    variant: str, call: SdpaCall, single: Sequence[tuple[str, float]], source: str, *, backward: bool
) -> Measured:
    total = sum(us for _, us in single)
    return Measured(variant, call, backward, "gpu", total, source, tuple((name, us) for name, us in single))


@cache
def in_traces() -> tuple[Measured, ...]:
    """Return what recorded traces show of fused attention's own kernels, some of it backward."""
    return tuple(
        Measured(row["backend"], call_of(row), row["direction"] == "backward", "gpu", row["us"], "traces")
        for row in rows("attention_in_traces_h200")
        if "backend" in row
    )


def steps_of(measured: Measured) -> list[tuple[Step, float]]:
    """Return the expected steps with what each took; nothing where others ran than were expected."""
    found: list[tuple[Step, float]] = []
    ran = list(measured.single)
    expected = activities_of(measured.parts(), ENVIRONMENT)
    if (expected.kernel_count, expected.copy_count, expected.memsets) != _counts(ran):
        return []
    for part in measured.parts():
        mine = part.activities
        count = len(mine.kernels or ()) + len(mine.copies or ()) + (mine.memsets or 0)
        found += _matched(part.steps, ran[:count])
        ran = ran[count:]
    return found


def _counts(ran: Sequence[tuple[str, float]]) -> tuple[int, int, int]:
    copies = sum(name.startswith("Memcpy") for name, _ in ran)
    memsets = sum(name.startswith("Memset") for name, _ in ran)
    return len(ran) - copies - memsets, copies, memsets


def _matched(steps: Sequence[Step], ran: Sequence[tuple[str, float]]) -> Iterator[tuple[Step, float]]:
    """Match one operation's steps and activities; the last step has all that are left."""
    times = [us for _, us in ran]
    for index, step in enumerate(steps):
        last = index == len(steps) - 1
        yield step, sum(times[index:]) if last else times[index]


@cache
def the_machine() -> Machine:
    """Return the GPU of the measurements, by the ceilings that were measured with them."""
    gpu = next(gpu for gpu in all_gpus() if gpu.key == "h200-sxm")
    return Machine(
        gpu=gpu,
        sms=gpu.sms,
        bandwidth=probes()["copy_bytes_per_s"] / 1e6,
        clock=1.0,
        tensor=1.0,
        legacy_tensor=1.0,
        general=1.0,
        reference=True,
    )


def probes() -> dict[str, float]:
    """Return the ceilings that were measured."""
    return {row["probe"]: row["value"] for row in rows("sdpa_timing_h200") if "probe" in row}


def reference_table() -> dict[str, Any]:
    """Return the machine of the measurements for `fitted.toml`."""
    device, measured = rows("attention_activities_h200")[0], probes()
    return {
        "gpu": "h200-sxm",
        "torch": device["torch"],
        "cudnn": device["cudnn"],
        "copy_bytes_per_s": round(measured["copy_bytes_per_s"]),
        "matmul_flops": round(measured["bf16_flops"]),
        "fp32_flops": round(measured["fp32_flops"]),
    }
