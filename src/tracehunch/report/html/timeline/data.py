"""What the script of the timeline draws: columns, names, lanes, details, gaps and evidence."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracehunch.kernels.explain import explain
from tracehunch.report.html.modules import modules_of
from tracehunch.report.html.timeline.details import gpu_columns, input_columns
from tracehunch.report.html.timeline.evidence import evidence_of, positions
from tracehunch.report.html.timeline.families import FAMILIES, families_of
from tracehunch.report.html.timeline.gaps import gaps_of
from tracehunch.report.html.timeline.lanes import lanes_of
from tracehunch.report.html.timeline.pack import packed
from tracehunch.trace.model import GPU_CATS, Cat
from tracehunch.tree.keys import numbered
from tracehunch.units import printable

if TYPE_CHECKING:
    from tracehunch.report.html.timeline.window import Window
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree
    from tracehunch.verdict import Look

_NARROW: Final = 2**32
_EXACT: Final = 2**53
"""What a script's numbers hold whole: a hundred days of nanoseconds."""

_KINDS: Final = {
    Cat.CPU_OP: "op",
    Cat.USER_ANNOTATION: "annotation",
    Cat.PYTHON_FUNCTION: "Python",
    Cat.RUNTIME: "runtime call",
    Cat.DRIVER: "driver call",
    Cat.OVERHEAD: "profiler's own work",
    Cat.SYNC: "synchronisation",
    Cat.KERNEL: "kernel",
    Cat.MEMCPY: "copy",
    Cat.MEMSET: "memset",
}


def timeline_data(name: str, look: Look, window: Window) -> dict[str, Any]:
    """Return it as JSON can hold it; times are whole `unit_ns` from the window's start on."""
    tree = look.facts.tree
    trace = tree.trace
    lanes = lanes_of(tree, window.rows)
    rows = lanes.rows
    span_ns = window.end_ns - window.start_ns
    unit = -(-max(span_ns, 1) // _EXACT)
    times = "u32" if span_ns < _NARROW else "f64"
    start = (trace.start_ns[rows] - window.start_ns) // unit
    end = (trace.end_ns()[rows] - window.start_ns) // unit
    names = numbered(trace.name[rows].astype(np.int64))
    used = [trace.names[int(trace.name[rows[at]])] for at in names.first.tolist()]
    module, modules = modules_of(tree, rows)
    kinds = list(_KINDS)
    kind_of = np.zeros(max(Cat) + 1, dtype=np.int64)
    for at, cat in enumerate(kinds):
        kind_of[cat] = at
    return {
        "trace": printable(name),
        "unit_ns": int(unit),
        "span": int(span_ns // unit),
        "too_deep": lanes.too_deep,
        "lanes": [asdict(one) for one in lanes.lanes],
        "families": FAMILIES,
        "kinds": [_KINDS[cat] for cat in kinds],
        "names": [printable(name) for name in used],
        "decoded": _decoded(tree, rows, used),
        "start": packed(start, times),
        "dur": packed(end - start, times),
        "name": packed(names.number, "u32"),
        "kind": packed(kind_of[trace.cat[rows]], "u8"),
        "family": packed(families_of(look, rows), "u8"),
        "event": packed(trace.event[rows], "u32"),
        "launch": packed(positions(rows, tree.launch[rows].astype(np.int64)), "i32"),
        "op": packed(positions(rows, tree.op[rows].astype(np.int64)), "i32"),
        "modules": modules,
        "module": packed(module, "u32"),
        **input_columns(trace, rows),
        **gpu_columns(look, rows),
        "gaps": gaps_of(look, window, unit),
        "evidence": evidence_of(look, rows, window, unit),
    }


def _decoded(tree: Tree, rows: Int64, names: list[str]) -> dict[str, list[str]]:
    """Return what the names of GPU activities say, a line a field, by the name's number."""
    on_gpu = np.isin(tree.trace.cat[rows], GPU_CATS)
    known = {tree.trace.names[name] for name in np.unique(tree.trace.name[rows[on_gpu]]).tolist()}
    return {
        str(at): [printable(line.strip()) for line in explain(name).split("\n")[1:]]
        for at, name in enumerate(names)
        if name in known
    }
