"""What a report says about the trace as a whole, in words, whatever format it is written in.

All text from the trace has gone through ``units.printable``; each format escapes what it must on top of that.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from tracehunch.report.environment_text import environment_lines
from tracehunch.report.origin import GpuShares, devices_used, gpu_shares, n_devices_used, vendor
from tracehunch.trace.model import Device, Notice, Trace
from tracehunch.units import join, percent, plural, printable, share, size, time_us
from tracehunch.verdict import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.verdict import Look


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of a Look is shown. ``scopes`` are names (all that a report shows if empty).

    Of the findings only the costliest are shown, unless ``all_findings``.
    """

    scopes: tuple[str, ...] = ()
    top: int = 10
    all_scopes: bool = False
    all_findings: bool = False

    def takes(self, scope: str) -> bool:
        """Whether something of this scope is shown."""
        return not self.scopes or scope in self.scopes


def recorded_on(look: Look) -> list[tuple[str, str]]:
    """Return what was recorded on what; always how much GPU time is unattributed or outside the window."""
    tree = look.facts.tree
    trace = tree.trace
    lines = [
        ("on", _device_text(trace)),
        ("recorded", _contents(trace, look.facts.counts)),
        ("with", _flags(trace)),
        *environment_lines(trace.header.environment),
    ]
    if len(trace.gpu.row):
        lines.append(("GPU time", _share_text(gpu_shares(tree))))
    if idle := _idle_text(look):
        lines.append(("GPU idle", idle))
    return lines


def notices(look: Look) -> list[Notice]:
    """All warnings about the file, made printable; those that mean lost data first."""
    tree = look.facts.tree
    both = [Notice(n.code, printable(n.message), n.lossy) for n in (*tree.trace.notices, *tree.notices)]
    return sorted(both, key=lambda notice: not notice.lossy)


def next_command(look: Look, source: str, selection: Selection | None = None) -> str:
    """Return the next command to type: about a finding that the report shows, else to keep what it shows."""
    named = "TRACE" if source == "-" else shlex.quote(printable(source))
    shown = [one for one in look.checked.findings if selection is None or selection.takes(one.scope)]
    if shown:
        loudest = max(shown, key=lambda one: SEVERITIES.index(one.severity))
        return f"tracehunch explain {loudest.id}"
    return f"tracehunch guess --from {named} -o hunch.toml"


def _device_text(trace: Trace) -> str:
    used = devices_used(trace)
    if not used:
        activities = len(trace.gpu.row)
        return "a GPU whose name was not recorded" if activities else "no GPU in this trace (CPU only)"
    text = join([_one_device(device, n, vendor(trace)) for device, n in used])
    there, active = len(trace.header.devices), n_devices_used(trace)
    return f"{text} ({active} of {there} GPUs used)" if 0 < active < there else text


def _one_device(device: Device, n: int, whose: str) -> str:
    units = "compute units" if whose == "amd" else "SMs" if whose == "nvidia" else "compute units"
    parts = [f"{n} GPUs, each {printable(device.name)}" if n > 1 else printable(device.name)]
    parts += [f"{device.sms} {units}"] if device.sms else []
    if whose == "nvidia" and device.compute_capability:
        parts.append(f"compute capability {device.compute_capability}")
    parts += [size(device.memory_bytes)] if device.memory_bytes else []
    return ", ".join(parts)


def _contents(trace: Trace, counts: Mapping[str, object]) -> str:
    parts = [plural(trace.n_events, "event")]
    parts.append(
        plural(len(trace.gpu.row), "GPU activity", "GPU activities")
        if len(trace.gpu.row)
        else "no GPU activity"
    )
    steps = counts.get("n_steps")
    parts += [plural(steps, "step")] if isinstance(steps, int) and steps else ["no profiler steps"]
    rank, world = trace.header.rank, trace.header.world_size
    if rank is not None:
        parts.append(f"rank {rank} of {world}" if world is not None else f"rank {rank}")
    return ", ".join(parts)


def _flags(trace: Trace) -> str:
    recorded = trace.header.recorded
    flags = {"shapes": recorded.shapes, "stacks": recorded.stacks, "memory": recorded.memory}
    there, lacking = [f for f, on in flags.items() if on], [f for f, on in flags.items() if not on]
    words = ([join(there)] if there else []) + ([f"no {join(lacking, 'or')}"] if lacking else [])
    torch = f"torch {printable(trace.header.torch)}" if trace.header.torch else "torch version not recorded"
    return f"{', '.join(words)}; {torch}"


def _share_text(shares: GpuShares) -> str:
    outside = f"{share(shares.outside_us, shares.total_us)} launched outside the recorded window"
    if shares.outside:
        outside += f" ({plural(shares.outside, 'activity', 'activities')})"
    lost = f"{share(shares.unattributed_us, shares.total_us)} unattributed"
    if shares.unattributed:
        lost += f" ({plural(shares.unattributed, 'activity', 'activities')})"
    return f"{time_us(shares.total_us)} in all, {lost}, {outside}"


def _idle_text(look: Look) -> str:
    """``73% of the steps (46.8 ms wall, 12.7 ms busy a step)``; "" where it cannot be known.

    Where the GPU runs behind the host, a step's own time on the host says nothing of idle time: then it is
    that of the whole recording.
    """
    for kind, where, each in (("step", "of the steps", " a step"), ("whole", "of the recorded window", "")):
        for scope in look.facts.scopes:
            wall, busy, idle = (scope.value(key) for key in ("wall_time", "gpu_busy", "gpu_idle"))
            if scope.scope.kind != kind or not (_is_number(wall) and _is_number(busy) and _is_number(idle)):
                continue
            if busy <= wall:
                return f"{percent(100 * idle)} {where} ({time_us(wall)} wall, {time_us(busy)} busy{each})"
    return ""


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float)


def has_gpu_work(look: Look) -> bool:
    """Whether the trace holds GPU activities; without them a report speaks of ops and CPU time."""
    return bool(len(look.facts.tree.trace.gpu.row))
