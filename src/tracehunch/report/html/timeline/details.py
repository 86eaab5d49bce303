"""Details of events: what ops were called with, how kernels were launched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracehunch.facts.occupancy import occupancies
from tracehunch.report.html.timeline.pack import packed
from tracehunch.trace.model import GPU_CATS, Cat
from tracehunch.units import printable, shorten

if TYPE_CHECKING:
    from tracehunch.trace.model import Int64, OpInputs, Trace
    from tracehunch.verdict import Look

_LONGEST: Final = 400  # characters of an op's inputs


def input_columns(trace: Trace, rows: Int64) -> dict[str, Any]:
    """Return the texts of distinct inputs, the first "" for none, and which of them each event has."""
    ops = np.flatnonzero(trace.cat[rows] == Cat.CPU_OP)
    number = np.zeros(rows.size, dtype=np.int64)
    texts = [""]
    if ops.size and trace.header.recorded.shapes:
        which, inputs = trace.inputs_of(rows[ops])
        told = [_input_text(one) for one in inputs]
        texts += told
        number[ops] = which + 1
    return {"inputs": texts, "input": packed(number, "u32")}


def gpu_columns(look: Look, rows: Int64) -> dict[str, Any]:
    """Return the launch of each GPU activity; `gpu` is an event's place in these columns, -1 on the host."""
    trace = look.facts.tree.trace
    on_gpu = np.flatnonzero(np.isin(trace.cat[rows], GPU_CATS))
    place = np.full(rows.size, -1, dtype=np.int64)
    place[on_gpu] = np.arange(on_gpu.size)
    at = np.searchsorted(trace.gpu.row, rows[on_gpu])
    table = trace.gpu
    occupied = occupancies(trace)[at] if on_gpu.size else np.zeros(0)
    return {
        "gpu": packed(place, "i32"),
        "grid": packed(_capped(table.grid[at].reshape(-1)), "i32"),
        "block": packed(_capped(table.block[at].reshape(-1)), "i32"),
        "registers": packed(table.registers[at], "i32"),
        "shared": packed(_capped(table.shared_memory[at]), "i32"),
        "occupancy": packed(np.nan_to_num(occupied, nan=-1.0), "f32"),
        "bytes": packed(_capped(table.bytes[at]), "i32"),
    }


def _capped(values: Any) -> Int64:
    """Return numbers that 32 bits hold; larger ones, which none of these have in earnest, as not recorded."""
    wide = np.asarray(values, dtype=np.int64)
    return np.where((wide >= 0) & (wide < 2**31), wide, -1)


def _input_text(inputs: OpInputs) -> str:
    """Return the shapes and types that were recorded, as "[8, 16] c10::BFloat16, Scalar 0.5"."""
    dims, types, values = (
        one if isinstance(one, list) else [] for one in (inputs.dims, inputs.types, inputs.values)
    )
    parts = []
    for at in range(max(len(dims), len(types))):
        shape = dims[at] if at < len(dims) else []
        kind = str(types[at]) if at < len(types) else ""
        value = str(values[at]) if at < len(values) else ""
        parts.append(" ".join(part for part in (str(shape) if shape else "", kind, value) if part) or "-")
    return shorten(printable(", ".join(parts)), _LONGEST)
