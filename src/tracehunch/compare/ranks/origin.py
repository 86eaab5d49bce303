"""Where a file comes from: rank, host, process groups, and a fingerprint of what was recorded."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracehunch.compare.ranks.model import Group
from tracehunch.trace.header import whole
from tracehunch.trace.model import Cat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.compare.ranks.model import RankFrom
    from tracehunch.trace.model import Header, Trace

_MOST_GROUPS: Final = 10_000
_LONGEST: Final = 200  # characters of a name
_HANDLER: Final = re.compile(
    r"(?P<host>[A-Za-z0-9][\w.-]{0,200}?)_(?P<pid>\d{1,10})\.\d{10,20}\.pt\.trace\.json"
)
"""``HOST_PID.STAMP.pt.trace.json``: how ``torch.profiler.tensorboard_trace_handler`` names files."""
_HOST_KEYS: Final = ("hostname", "host_name", "host", "node")


def rank_of(header: Header) -> tuple[int | None, RankFrom]:
    """Return the rank that a file states, and where; None where neither the file nor its name does."""
    rank = whole(distributed(header).get("rank"))
    if rank is not None:
        return rank, "distributedInfo"
    if header.rank is not None or header.rank_in_name is not None:
        return header.rank if header.rank is not None else header.rank_in_name, "file name"
    return None, "order"


def distributed(header: Header) -> Mapping[str, Any]:
    """Return the header's ``distributedInfo``; empty where it has none."""
    found = header.metadata.get("distributedInfo")
    return found if isinstance(found, dict) else {}


def backend_of(header: Header) -> str | None:
    """Return the backend of the default process group, such as "nccl" or "cpu:gloo,cuda:nccl"."""
    found = distributed(header).get("backend")
    return found[:_LONGEST] if isinstance(found, str) and found else None


def groups_of(header: Header) -> tuple[Group, ...]:
    """Return the process groups that the header configures."""
    entries = distributed(header).get("pg_config")
    if isinstance(entries, dict):
        entries = list(entries.values())
    found = [_group(one) for one in entries[:_MOST_GROUPS]] if isinstance(entries, list) else []
    return tuple(dict.fromkeys(group for group in found if group is not None))


def _group(entry: Any) -> Group | None:
    if not isinstance(entry, dict) or "pg_name" not in entry:
        return None
    listed = entry.get("ranks")
    ranks = tuple(map(whole, listed)) if isinstance(listed, list) else ()
    size = whole(entry.get("pg_size")) or len(ranks) or None
    known = tuple(rank for rank in ranks if rank is not None)
    return Group(
        name=str(entry["pg_name"])[:_LONGEST],
        description=str(entry.get("pg_desc") or "")[:_LONGEST],
        ranks=known if len(known) == size else (),
        size=size,
    )


def host_of(trace: Trace, name: str) -> str | None:
    """Return the host that a file states, in its header or as PyTorch's handler names files.

    In such a name the number after the host is a process that ran ops; else it is any other name.
    """
    header = trace.header
    for place in (distributed(header), header.environment.machine, header.metadata):
        for key in _HOST_KEYS:
            if isinstance(said := place.get(key), str) and said:
                return said[:_LONGEST]
    found = _HANDLER.match(re.split(r"[/\\]", name)[-1])
    return found["host"] if found and found["pid"] in _processes(trace) else None


def _processes(trace: Trace) -> set[str]:
    """Return the ids of processes that did something on the host: those of GPU rows are devices."""
    rows = trace.rows(Cat.CPU_OP, Cat.USER_ANNOTATION, Cat.RUNTIME)
    return {trace.processes[number] for number in np.unique(trace.process[rows]).tolist()}


def fingerprint_of(trace: Trace) -> str:
    """Hash what was recorded: names, stamps and durations, whatever the file is called or packed with."""
    digest = sha256(str(trace.header.base_time_ns).encode())
    for column in (trace.cat, trace.name, trace.start_ns, trace.dur_ns):
        digest.update(np.ascontiguousarray(column).data)
    digest.update("\0".join(trace.names).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]
