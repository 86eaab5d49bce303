"""The shape of an event as Kineto writes it. What differs from it takes the slower way through ``loose``."""

from __future__ import annotations

from math import nan
from typing import Final

import msgspec
from msgspec import Raw

from tracehunch.trace.model import ABSENT

NOTHING: Final = Raw(b"")
"""A key that the event does not have; compare by identity."""

_KEYS = {
    "external_id": "External id",
    "old_external_id": "external id",  # PyTorch 1.8 to 1.11
    "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
    "input_dims": "Input Dims",
    "call_stack": "Call stack",
    "registers": "registers per thread",
    "shared_memory": "shared memory",
    "blocks_per_sm": "blocks per SM",
    "occupancy_percent": "est. achieved occupancy %",
    "graph_id": "graph id",
    "graph_node_id": "graph node id",
    "allocated": "Bytes",
    "device_type": "Device Type",
}


class Args(msgspec.Struct, gc=False, frozen=True, rename=_KEYS):
    """The arguments that become columns; all others stay text until ``Trace.args_of`` asks for them."""

    external_id: int = ABSENT
    old_external_id: int = ABSENT
    correlation: int = ABSENT
    sequence: int = ABSENT
    forward_thread: int = ABSENT
    input_dims: Raw = NOTHING
    call_stack: Raw = NOTHING
    device: int | str = ABSENT
    stream: int | str = ABSENT
    bytes: int | float | str = ABSENT
    size: int | float | str = ABSENT  # ROCm's name for bytes
    registers: int = ABSENT
    shared_memory: int = ABSENT
    blocks_per_sm: float = nan
    occupancy_percent: float = nan
    grid: Raw = NOTHING
    block: Raw = NOTHING
    graph_id: int = ABSENT
    graph_node_id: int = ABSENT
    allocated: int = 0
    device_type: int = ABSENT


NO_ARGS: Final = Args()

ARG_KEYS: Final = {name: _KEYS.get(name, name) for name in Args.__struct_fields__}
"""Attribute of Args -> key in the file."""


class Event(msgspec.Struct, gc=False):
    """One entry of ``traceEvents``. ``name`` None: absent; ``ts`` or ``dur`` nan: absent."""

    ph: str = ""
    cat: str | None = None
    name: str | None = None
    ts: float = nan
    dur: float = nan
    pid: int | str = ""
    tid: int | str = ""
    args: Args = NO_ARGS
