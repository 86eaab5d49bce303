"""What the host calls of CUDA, HIP and SYCL do, from their names."""

import re
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Final

import numpy as np

from tracehunch.trace.model import LAUNCH_CATS, Int8, Int64, Trace


class Api(IntEnum):
    """What a runtime or driver call does; the first four put work on the GPU."""

    OTHER = 0
    KERNEL = 1
    GRAPH = 2
    MEMCPY = 3
    MEMSET = 4
    SYNC = 5  # waits for the GPU
    ALLOC = 6  # device memory
    FREE = 7
    CAPTURE_BEGIN = 8
    CAPTURE_END = 9


LAUNCHES: Final = (Api.KERNEL, Api.GRAPH, Api.MEMCPY, Api.MEMSET)

_RULES: Final = (
    (Api.GRAPH, r"(?:cuda|cu|hip)GraphLaunch"),
    # LaunchHostFunc runs on the host; the ze layer (below SYCL's ur) repeats calls and carries no GPU work
    (Api.KERNEL, r"(?:cuda|cu|hip)(?:Ext|Hcc|Drv)?(?:Module)?Launch(?!HostFunc)"),
    (Api.KERNEL, r"(?:ur|pi|piext)Enqueue\w*(?:KernelLaunch|LaunchKernel)"),
    (Api.MEMCPY, r"(?:cuda|cu|hip)Memcpy"),
    (Api.MEMCPY, r"(?:ur|pi|piext|piextUSM)Enqueue\w*(?:Memcpy|Copy|BufferRead|BufferWrite)"),
    (Api.MEMSET, r"(?:cuda|cu|hip)Memset"),
    (Api.MEMSET, r"(?:ur|pi|piext|piextUSM)Enqueue\w*(?:Fill|Memset)"),
    (Api.SYNC, r"(?:cuda|cu|hip)\w*Synchronize|(?:ur|pi)(?:QueueFinish|EventWait|EventsWait)"),
    (Api.ALLOC, r"(?:cuda|hip)(?:Ext)?Malloc(?!Host|Array)|cuMem(?:Alloc(?!Host)|Create)"),
    (Api.FREE, r"(?:cuda|hip)Free(?!Host|Array)|cuMem(?:Free(?!Host)|Release)"),
    (Api.CAPTURE_BEGIN, r"(?:cuda|cu|hip)StreamBeginCapture"),
    (Api.CAPTURE_END, r"(?:cuda|cu|hip)StreamEndCapture"),
)
_COMPILED: Final = tuple((api, re.compile(pattern)) for api, pattern in _RULES)
_BLOCKING_COPY: Final = re.compile(r"(?:cuda|cu|hip)Memcpy(?!\w*Async)")


@lru_cache(maxsize=4_096)
def api_of(name: str) -> Api:
    """Return what a call does; OTHER for all that neither launches, waits nor allocates (queries, events)."""
    return next((api for api, pattern in _COMPILED if pattern.match(name) is not None), Api.OTHER)


def waits(name: str) -> bool:
    """Tell whether the host waits for the GPU in a call: synchronisation, and copies that are not Async."""
    return api_of(name) is Api.SYNC or _BLOCKING_COPY.match(name) is not None


def api_column(trace: Trace) -> Int8:
    """Return the ``Api`` of every runtime and driver row; OTHER elsewhere."""
    column = np.zeros(len(trace), dtype=np.int8)
    rows = trace.rows(*LAUNCH_CATS)
    if rows.size:
        codes = np.zeros(len(trace.names), dtype=np.int8)
        for name in np.flatnonzero(np.bincount(trace.name[rows])).tolist():
            codes[name] = api_of(trace.names[name])
        column[rows] = codes[trace.name[rows]]
    return column


def is_one_of(column: Int8, apis: Iterable[Api]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Mask of the rows that do one of these."""
    wanted = np.zeros(len(Api), dtype=bool)
    wanted[[int(api) for api in apis]] = True
    return wanted[column]


def waiting_rows(trace: Trace) -> Int64:
    """Runtime and driver rows in which the host waits for the GPU."""
    rows = trace.rows(*LAUNCH_CATS)
    waiting = np.zeros(len(trace.names), dtype=bool)
    for name in np.flatnonzero(np.bincount(trace.name[rows], minlength=waiting.size)).tolist():
        waiting[name] = waits(trace.names[name])
    return rows[waiting[trace.name[rows]]]
