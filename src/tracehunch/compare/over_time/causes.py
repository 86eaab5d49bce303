"""Why something changed, as far as the calls before and after show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.noise import GPU_MARGIN
from tracehunch.compare.over_time.calls import ALONE, COLLECTIVE, KEPT, OUTSIDE
from tracehunch.compare.over_time.model import COMPUTE, Cause
from tracehunch.compare.over_time.scene import CHANGED, WORK, Scene, scene_of
from tracehunch.units import elide, join, percent, printable, ratio, size, time_us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracehunch.compare.over_time.model import Cycle, Shift
    from tracehunch.compare.over_time.series import Points

CAUSES: Final = (
    "environment", "restarted", "recording", "attention-backend", "number-format", "more-work", "less-work",
    "other-kernels", "memory-kept", "recompiling", "waits", "clock", "some-kernels",
    "beside-collectives", "other-ranks", "outside-pytorch", "slower-host",
)  # fmt: skip
"""Ids, the surest first."""

_ALIKE: Final = 1.15
"""Ratio of the kernels' slow-downs up to which they are slower alike."""
_MOST: Final = 0.9  # share of the time of the kernels that are looked at
_PART: Final = 0.5  # share of a change that a cause must account for
_SHOWN: Final = 3
_WIDTH: Final = 48


def causes_of(shift: Shift, points: Points, cycles: Sequence[Cycle]) -> tuple[Cause, ...]:
    """Return what explains a shift, the surest first; nothing of what comes by turns."""
    levels = shift.drifts[0].levels
    if shift.kind == "turns" or len(levels) < 2:
        return ()
    scene = scene_of(shift, points, cycles)
    found = [cause for rule in _RULES for cause in rule(scene)]
    return tuple(sorted(found, key=lambda cause: CAUSES.index(cause.id)))


def _environment(scene: Scene) -> Iterator[Cause]:
    before, after = scene.before.cycles[-1], scene.after.cycles[0]
    if before is after:
        return
    if before.process != after.process:
        yield Cause("restarted", "another process: the run was started again", "medium")
    changed = [
        f"{name} {one} -> {two}"
        for group in ("versions", "flags", "variables")
        for name, one, two in _differences(
            getattr(before.environment, group), getattr(after.environment, group)
        )
    ]
    if before.torch != after.torch and before.torch and after.torch:
        changed.insert(0, f"PyTorch {printable(before.torch, 40)} -> {printable(after.torch, 40)}")
    if changed:
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        yield Cause("environment", f"the environment changed: {', '.join(changed[:_SHOWN])}{more}", "high")
    if before.recorded != after.recorded:
        yield Cause(
            "recording",
            "the profiler recorded other things (shapes, stacks, memory): that costs host time",
            "medium",
        )


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield printable(name, 40), printable(str(before[name]), 30), printable(str(after[name]), 30)


def _texts(scene: Scene) -> Iterator[Cause]:
    for key, cause, what in (
        ("sdpa.backend", "attention-backend", "attention moved from the {} to the {} backend"),
        ("dtype", "number-format", "the number format changed from {} to {}"),
    ):
        drift = scene.drift(key)
        if drift is not None:
            first, later = (_text(level.value) for level in (drift.levels[0], drift.levels[-1]))
            if "none" in (first, later):  # attention itself came or went
                continue
            yield Cause(cause, what.format(first, later), "high")


def _text(value: object) -> str:
    return join(list(map(str, value))) if isinstance(value, tuple) else str(value)


def _names(scene: Scene) -> Iterator[Cause]:
    """Say which kernels (ops) came and went."""
    before, after = scene.before.count, scene.after.count
    if scene.shift.kind != "step" or not before or not after:
        return
    went = sorted(before.keys() - after.keys(), key=lambda name: -scene.before.time_us[name])
    came = sorted(after.keys() - before.keys(), key=lambda name: -scene.after.time_us[name])
    what = "kernel" if scene.on_gpu else "op"
    parts = []
    shown = 1 if scene.grown and scene.same_ops else _SHOWN  # sizes say it, these follow
    if went:
        parts.append(f"gone: {_list(went, before, shown)}")
    if came:
        parts.append(f"new: {_list(came, after, shown)}")
    more = [name for name in before.keys() & after.keys() if abs(after[name] - before[name]) >= 0.5]
    if more and not parts:
        name = max(more, key=lambda name: abs(after[name] - before[name]))
        parts.append(
            f"{elide(printable(name), _WIDTH)} runs {after[name]:.3g} times a call, before {before[name]:.3g}"
        )
    if parts:
        yield Cause("other-kernels", f"other {what}s run; {'; '.join(parts)}", "high")


def _list(names: Sequence[str], count: Mapping[str, float], most: int) -> str:
    shown = [f"{elide(printable(name), _WIDTH)}{_often(count[name])}" for name in names[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")


def _often(n: float) -> str:
    return "" if n <= 1.5 else f" ({n:.3g}x)"


def _work(scene: Scene) -> Iterator[Cause]:
    """Say that the same kernels have more (or less) to do."""
    if not scene.same_ops and scene.shift.kind == "step":
        return
    grown = scene.grown
    if not grown:
        return
    more = next(iter(grown.values())) > 1
    told = ", ".join(f"{ratio(times)} the {WORK[key]}" for key, times in list(grown.items())[:2])
    how = "grow" if scene.shift.kind == "trend" else "became larger" if more else "became smaller"
    how = "shrink" if scene.shift.kind == "trend" and not more else how
    inputs = f"inputs {how} (batch, sequence or cache): the same ops have {told}"
    yield Cause("more-work" if more else "less-work", inputs, "high")


def _kept(scene: Scene) -> Iterator[Cause]:
    drift = scene.drift(KEPT)
    if drift is not None and drift.slope:
        text = (
            f"each step keeps {size(drift.slope)} that no later step gives back: something holds on to "
            "tensors (a list of losses or outputs, a graph that is not freed)"
        )
        yield Cause("memory-kept", text, "medium")
    elif scene.grew("allocations") >= 1:
        yield Cause(
            "memory-kept",
            "cudaMalloc and cudaFree are called again: the allocator's cache no longer fits the requests",
            "medium",
        )


def _compiling(scene: Scene) -> Iterator[Cause]:
    if (
        scene.grew("compiled.recompiles") > 0
        or scene.grew("compiled.compile_time") > _PART * abs(scene.grew("wall_time")) > 0
    ):
        yield Cause(
            "recompiling", "torch.compile compiles again in these calls: a shape or a guard changes", "high"
        )


def _waits(scene: Scene) -> Iterator[Cause]:
    if scene.grew("syncs") >= 1 or scene.grew("sync_time") > _PART * scene.grew("wall_time") > 0:
        n, waited = (scene.after.values.get(key, 0.0) for key in ("syncs", "sync_time"))
        often = "once" if n == 1 else f"{n:.3g} times"
        yield Cause(
            "waits",
            f"the host waits for the GPU {often} a call, {time_us(waited)} in all",
            "medium",
        )


def _slower(scene: Scene) -> Iterator[Cause]:
    """Say that the same kernels take longer on the same work: all alike, or some."""
    key = COMPUTE if COMPUTE in scene.after.values else "gpu_time"
    told = scene.drift(key) is not None or scene.drift(ALONE) is not None
    if not scene.on_gpu or not told or not scene.same_work:
        return
    alone = abs(scene.times(ALONE) - 1) > GPU_MARGIN  # then collectives are not why
    key = ALONE if alone else key
    before, after = (side.alone_us if alone else side.time_us for side in (scene.before, scene.after))
    shared = sorted(before.keys() & after.keys(), key=lambda name: (-before[name], name))
    total = sum(before.values())
    chosen, covered = [], 0.0
    for name in shared:
        if covered < _MOST * total and not name.startswith(("nccl", "rccl")):
            chosen.append(name)
            covered += before[name]
    ratios = {name: after[name] / before[name] for name in chosen if before[name]}
    if not ratios:
        return
    low, high = min(ratios.values()), max(ratios.values())
    slower = scene.grew(key) > 0
    clock = _clock(scene)
    if high / low <= _ALIKE:
        times = ratio(float(np.median(list(ratios.values()))))
        how = f"the same kernels on inputs of the same size all take {times} the time, alike"
        why = (
            "a lower clock (power, temperature) or another tenant of the GPU"
            if slower
            else "a higher clock, or another tenant of the GPU left"
        )
        yield Cause("clock", f"{how}: {clock or why}", "high" if clock else "medium")
        return
    moved = sorted(chosen, key=lambda name: -abs(after[name] - before[name]))
    named = ", ".join(
        f"{elide(printable(name), _WIDTH)} {ratio(ratios[name])}" for name in moved[:_SHOWN] if name in ratios
    )
    yield Cause(
        "some-kernels",
        f"the same kernels on inputs of the same size changed unlike each other: {named}",
        "medium",
    )


def _beside(scene: Scene) -> Iterator[Cause]:
    """Say that collectives, which wait longer (or less), share the GPU with more (or fewer) kernels."""
    waits, kernels = scene.grew(COLLECTIVE), scene.grew(COMPUTE)
    if ALONE not in scene.after.values or scene.drift(COMPUTE) is None:
        return
    if waits * kernels > 0 and abs(waits) > abs(kernels):
        more = "more" if waits > 0 else "less"
        text = (
            f"collectives take {time_us(abs(waits))} {more} a call; kernels beside one that waits are "
            f"slower, so a part of this is that {'more' if waits > 0 else 'fewer'} run beside them"
        )
        yield Cause("beside-collectives", text, "low")


def _clock(scene: Scene) -> str:
    clocks = [
        [c.environment.machine.get("sm_clock_mhz") for c in side.cycles]
        for side in (scene.before, scene.after)
    ]
    first, later = ([float(one) for one in some if isinstance(one, int | float)] for some in clocks)
    if not first or not later or abs(np.median(later) / np.median(first) - 1) <= CHANGED:
        return ""
    return f"the recorded SM clock went from {np.median(first):.0f} to {np.median(later):.0f} MHz"


def _collectives(scene: Scene) -> Iterator[Cause]:
    more = scene.grew(COLLECTIVE)
    if more > _PART * abs(scene.grew("wall_time")) and scene.drift("wall_time") is not None and more > 0:
        yield Cause(
            "other-ranks",
            f"collectives take {time_us(more)} more a call: this rank may wait for another",
            "medium",
        )


def _host(scene: Scene) -> Iterator[Cause]:
    """Say where the host's time went if the GPU's did not change."""
    wall = scene.grew("wall_time")
    if scene.drift("wall_time") is None or not scene.same_work or abs(wall) <= 0:
        return
    gpu = scene.grew(COMPUTE) if COMPUTE in scene.after.values else scene.grew("gpu_time")
    if scene.on_gpu and gpu > _PART * wall > 0:
        return
    steady = " while the GPU's is the same" if scene.on_gpu else ""
    outside = scene.grew(OUTSIDE) - max(
        scene.grew("sync_time"), 0.0
    )  # a wait for the GPU is in no op, either
    if outside > _PART * wall > 0:
        yield Cause(
            "outside-pytorch",
            f"{time_us(outside)} more a call in no PyTorch op{steady}: Python, loading data, "
            "I/O, a lock or a sleep",
            "high",
        )
    elif scene.grew("cpu_time") > _PART * wall > 0:
        longer = f"take the host {percent(100 * (scene.times('cpu_time') - 1))} longer{steady}"
        if scene.size_known:
            text = f"the same ops on inputs of the same size {longer}: a busier or slower CPU, fewer threads"
        else:
            text = f"the same ops {longer}: larger inputs (record_shapes=True would tell), or a slower CPU"
        yield Cause("slower-host", text, "medium" if scene.size_known else "low")
    elif wall < 0:
        yield Cause("slower-host", f"the host needs {time_us(-wall)} less a call for the same work", "medium")


_RULES: Final[tuple[Callable[[Scene], Iterator[Cause]], ...]] = (
    _environment, _texts, _names, _work, _kept, _compiling, _waits, _slower, _beside, _collectives, _host,
)  # fmt: skip
