"""The words and numbers of a critical path, the same in every format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.compare.critical import Kind
from tracehunch.report import summary
from tracehunch.units import count, join, percent, printable, share, time_us

if TYPE_CHECKING:
    from tracehunch.compare.critical import CriticalPath, WhatIf
    from tracehunch.verdict import Look

LONGEST: Final = 10
_EVENTS: Final = 3
_GPU: Final = (Kind.KERNEL, Kind.COPY, Kind.MEMSET, Kind.COMMUNICATION, Kind.DEVICE)
_HOST: Final = (Kind.OP, Kind.OUTSIDE, Kind.LAUNCH, Kind.CALL, Kind.LOADING, Kind.PROFILER)
_SHORT: Final = (*_GPU, Kind.LATENCY, Kind.UNKNOWN)
_BOUND: Final = 0.6
_MOSTLY: Final = 0.5
_LEAST: Final = 0.001
"""Part of a step below which a gain is none."""

MEANING: Final = {
    Kind.KERNEL: "kernels",
    Kind.COMMUNICATION: "collectives, with the wait for other ranks",
    Kind.COPY: "memcpys",
    Kind.MEMSET: "memsets",
    Kind.DEVICE: "between GPU activities that were queued in time",
    Kind.LATENCY: "from a launch to the start of its work",
    Kind.LAUNCH: "host time of calls that launch",
    Kind.OP: "host time of ops, without their calls",
    Kind.CALL: "other calls: events, queries, allocations",
    Kind.WAIT: "what calls that wait cost beyond the wait",
    Kind.OUTSIDE: "host time between ops: Python, C++",
    Kind.LOADING: "making batches",
    Kind.PROFILER: "the profiler's own work",
    Kind.UNKNOWN: "nothing says what was waited for",
}


@dataclass(frozen=True, slots=True)
class KindRow:
    """One kind's share."""

    share: str
    time: str
    kind: str
    meaning: str


@dataclass(frozen=True, slots=True)
class LongRow:
    """One of the longest contributors."""

    share: str
    time: str
    stretches: str
    kind: str
    what: str
    brief: str  # the same without the kernel's name, where an op stands for it
    events: str


@dataclass(frozen=True, slots=True)
class WhatIfRow:
    """One answer."""

    gain: str
    time: str
    title: str
    then: str


def title(path: CriticalPath) -> str:
    """Name what the path is of: ``ProfilerStep#4, the median of 3: 1.078 ms``."""
    which = {"median": f", the median of {count(path.calls)}", "whole": ", the whole trace"}
    name = printable(path.name)
    return f"{name}{which.get(path.chosen, '')}: {time_us(path.length_ns / 1e3)}"


def is_bound_by_ranks(path: CriticalPath) -> bool:
    """Whether most of the path is communication: what it waits for, only the traces of all ranks show."""
    return dict(path.kinds).get(Kind.COMMUNICATION, 0) > _MOSTLY * path.length_ns


def next_command(look: Look, path: CriticalPath, source: str) -> str:
    """Return the next command to type."""
    return "tracehunch ranks FOLDER" if is_bound_by_ranks(path) else summary.next_command(look, source)


def verdict(path: CriticalPath) -> str:
    """Say in a sentence who bounds it."""
    total = path.length_ns
    sums = dict(path.kinds)
    gpu, host = (sum(sums.get(kind, 0) for kind in kinds) for kinds in (_GPU, _HOST))
    if not total:
        return "nothing that took time"
    if is_bound_by_ranks(path):
        part = share(sums[Kind.COMMUNICATION], total)
        return f"Other ranks or the network bound it: {part} of the path is collectives, waiting included."
    if host >= _BOUND * total:
        return f"The host bounds it: {share(host, total)} of the path is host work."
    if gpu >= _BOUND * total:
        return f"The GPU bounds it: {share(gpu, total)} of the path is its work."
    return f"Host and GPU take turns: {share(host, total)} host work, {share(gpu, total)} GPU work."


def kind_rows(path: CriticalPath) -> list[KindRow]:
    """Return the kinds, longest first; they sum to the path."""
    return [
        KindRow(share(time, path.length_ns), time_us(time / 1e3), kind.value, MEANING[kind])
        for kind, time in path.kinds
    ]


def long_rows(path: CriticalPath, most: int = LONGEST) -> list[LongRow]:
    """Return the longest contributors."""
    return [
        LongRow(
            share(one.time_ns, path.length_ns),
            time_us(one.time_ns / 1e3),
            count(one.stretches),
            one.kind.value,
            _what(one.name, one.detail),
            printable(one.name) if one.kind in _SHORT else _what(one.name, one.detail),
            ", ".join(map(str, one.events[:_EVENTS])),
        )
        for one in path.contributors[:most]
    ]


def rest(path: CriticalPath, most: int = LONGEST) -> str:
    """Say how much the contributors that are not listed take; "" if all are."""
    left = path.contributors[most:]
    if not left:
        return ""
    time = sum(one.time_ns for one in left)
    return f"{count(len(left))} more: {share(time, path.length_ns)}"


def what_if_rows(path: CriticalPath) -> list[WhatIfRow]:
    """Return the answers that change something, the largest gain first."""
    return [
        WhatIfRow(
            gain_text(path, one),
            time_us(one.after_ns / 1e3),
            printable(one.title),
            one.then.value if one.then else "-",
        )
        for one in path.what_ifs
        if one.after_ns is not None and _gain(path, one) >= _LEAST
    ]


def without_gain(path: CriticalPath) -> str:
    """Name what would change nothing; "" if there is nothing of the kind."""
    found = [
        printable(one.title)
        for one in path.what_ifs
        if one.after_ns is not None and _gain(path, one) < _LEAST
    ]
    return f"no gain if {join(found, 'or')}" if found else ""


def untold(path: CriticalPath) -> str:
    """Name what cannot be told, and why; "" if all can."""
    found = [one for one in path.what_ifs if one.after_ns is None]
    return f"if {join([one.title for one in found], 'or')}: {found[0].why}" if found else ""


def gain_text(path: CriticalPath, one: WhatIf) -> str:
    """By how much a step would be shorter: ``-31%``."""
    return f"-{percent(100 * _gain(path, one))}"


def _gain(path: CriticalPath, one: WhatIf) -> float:
    after = path.length_ns if one.after_ns is None else one.after_ns
    return (path.length_ns - after) / path.length_ns if path.length_ns else 0.0


def _what(name: str, detail: str) -> str:
    return f"{printable(name)}: {printable(detail)}" if detail else printable(name)
