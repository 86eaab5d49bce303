"""What computed: dominant ops, number formats, matrix units, occupancy."""

from typing import Final

import numpy as np

from tracehunch.facts.activities import KERNEL, called_ops, is_library
from tracehunch.facts.column import Bool, Column, Words
from tracehunch.facts.context import Context
from tracehunch.facts.work import floating_type
from tracehunch.trace.model import UNKNOWN_NS, Int64
from tracehunch.tree import NONE, work_of
from tracehunch.tree.keys import sums_by
from tracehunch.tree.names import names_that

_LEADING: Final = 10
"""Ops that ``dominant`` lists at most."""

_MATRIX_OPS: Final = ("mm", "matmul", "linear", "conv", "attention")

_USED: Final = frozenset({"tensor-core", "mfma"})
_IDLE: Final = frozenset({"cuda-core", "vector"})
_TEMPLATES: Final = frozenset(
    {"gemm", "conv", "attention-forward", "attention-backward", "attention-split-kv"}
)


def columns(context: Context) -> list[Column]:
    """Occupancy per call: the mean over the kernels' time; unknown unless every kernel's is known."""
    gpu = context.gpu
    timed = (gpu.kind == KERNEL) & (gpu.dur_ns > 0)
    told = timed & ~np.isnan(gpu.occupancy)
    if not told.any():
        return []
    time = context.ownership.gpu.sums(np.where(timed, gpu.dur_ns, 0))[0]
    known_time = context.ownership.gpu.sums(np.where(told, gpu.dur_ns, 0))[0]
    weights = np.where(told, gpu.dur_ns * np.nan_to_num(gpu.occupancy) * 1e3, 0)
    weighted = context.ownership.gpu.sums(np.rint(weights))[0] / 1e3
    known = (known_time > 0) & (known_time == time) & context.gpu_known
    return [Column("occupancy", weighted / np.maximum(known_time, 1), None, known)]


def words(context: Context) -> list[Words]:
    """Texts per scope."""
    return [_dominant(context), _tensor_cores(context), _dtypes(context)]


def _dominant(context: Context) -> Words:
    gpu = context.gpu
    if gpu.row.size:
        pairs = context.ownership.gpu.pairs
        scope, item = context.pair_scope, pairs.item
        called, weight = gpu.called[item], gpu.dur_ns[item]
        mute = called == NONE
        scope, called, weight = scope[~mute], called[~mute], weight[~mute]
    else:
        scope, called, weight = _host_shares(context)
    return Words("dominant", _leading(context, scope, called, weight))


def _host_shares(context: Context) -> tuple[Int64, Int64, Int64]:
    """In a trace without a GPU: called ops by their time on the host."""
    trace, ops = context.trace, context.tree.ops
    if not ops.size or context.tree.launches.size:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none
    library = names_that(trace, is_library)[trace.name[ops]]
    outermost = (called_ops(context.tree, ops) == ops) & (library | (context.tree.n_children[ops] == 0))
    pairs = context.ownership.layout(work_of(trace, ops[outermost], context.tree.engine)).pairs
    rows = ops[outermost][pairs.item]
    lengths = trace.dur_ns[rows]
    return context.scope_of_call[pairs.call], rows, np.where(lengths == UNKNOWN_NS, 0, lengths)


def _leading(
    context: Context, scope: Int64, called: Int64, weight: Int64
) -> dict[int, str | tuple[str, ...]]:
    """Names of the ops with the most weight in each scope."""
    n_names = max(len(context.trace.names), 1)
    keys, total = sums_by(scope * n_names + context.trace.name[called], weight)
    of_scope, name = np.divmod(keys, n_names)
    values: dict[int, list[str]] = {}
    for at in np.lexsort((name, -total, of_scope)).tolist():
        leading = values.setdefault(int(of_scope[at]), [])
        if len(leading) < _LEADING and total[at] > 0:
            leading.append(context.trace.names[int(name[at])])
    return {scope_: tuple(leading) for scope_, leading in values.items() if leading}


def _tensor_cores(context: Context) -> Words:
    """Matrix units: ``idle`` only if no matrix kernel of the scope could be using them."""
    uses = context.gpu.uses
    units = [_unit(context, number) if use.kind == KERNEL else "none" for number, use in enumerate(uses)]
    used = _in_scopes(context, [unit in _USED for unit in units])
    idle = _in_scopes(context, [unit in _IDLE for unit in units])
    other = _in_scopes(context, [unit == "unknown" for unit in units])
    kernels = _in_scopes(context, [use.kind == KERNEL for use in uses])
    values: dict[int, str | tuple[str, ...]] = {}
    for scope in np.flatnonzero(kernels).tolist():
        if used[scope]:
            values[scope] = "mixed" if idle[scope] else "used"
        elif not other[scope]:
            values[scope] = "idle" if idle[scope] else "none"
    return Words("tensor_cores", values)


def _unit(context: Context, number: int) -> str:
    """Return the unit of a use; Inductor's matrix templates use matrix units for formats below 32 bit."""
    identity = context.gpu.uses[number].identity
    if not identity.classified:
        return "unknown"
    if identity.unit == "unknown" and identity.library == "inductor" and identity.algorithm in _TEMPLATES:
        narrow = (_format_of_use(context, number) or "").startswith(("bf16", "fp16", "fp8"))
        return "tensor-core" if narrow else "unknown"
    return identity.unit


def _in_scopes(context: Context, wanted: list[bool]) -> Bool:
    """Which scopes have an activity of a wanted use."""
    mask = context.gpu.of_uses(np.array(wanted, dtype=bool))
    n = context.ownership.gpu.sums(mask)[0]
    return np.bincount(context.scope_of_call, weights=n, minlength=len(context.scopes)) > 0


def _dtypes(context: Context) -> Words:
    """Order formats by time: of matrix and attention kernels if there are any, else of all kernels."""
    if not context.gpu.row.size:
        return Words("dtype", _host_dtypes(context))
    pairs, gpu = context.ownership.gpu.pairs, context.gpu
    formats = [_format_of_use(context, use) for use in range(len(gpu.uses))]
    matrix = np.array([use.is_matrix or use.is_attention for use in gpu.uses], dtype=bool)
    values = _by_weight(context.pair_scope, gpu.use[pairs.item], gpu.dur_ns[pairs.item], formats, matrix)
    return Words("dtype", values)


def _format_of_use(context: Context, use: int) -> str | None:
    """From the input types of the launching op where recorded, else from the kernel's name."""
    gpu, given = context.gpu, context.op_calls.given
    if gpu.uses[use].kind != KERNEL:
        return None
    found = {floating_type(given[at].types) for at in context.inputs_of_use[use]}
    word = found.pop() if len(found) == 1 else None
    return word or gpu.uses[use].identity.dtype


def _host_dtypes(context: Context) -> dict[int, str | tuple[str, ...]]:
    """In a trace without a GPU: formats of the ops, by host time."""
    scope, rows, weight = _host_shares(context)
    if not rows.size or not context.trace.header.recorded.shapes:
        return {}
    names, first, code = np.unique(context.trace.name[rows], return_index=True, return_inverse=True)
    formats = [
        floating_type(context.trace.args_of(int(row)).get("Input type")) for row in rows[first].tolist()
    ]
    matrix = np.array(
        [any(word in context.trace.names[name] for word in _MATRIX_OPS) for name in names.tolist()]
    )
    return _by_weight(scope, code.reshape(-1), weight, formats, matrix)


def _by_weight(
    scope: Int64, code: Int64, weight: Int64, formats: list[str | None], matrix: Bool
) -> dict[int, str | tuple[str, ...]]:
    """Return per scope the formats of its matrix work, or of all, most weight first."""
    values: dict[int, str | tuple[str, ...]] = {}
    key, total = sums_by(scope * max(len(formats), 1) + code, weight)
    shares: dict[int, dict[bool, dict[str, float]]] = {}
    for number, amount in zip(key.tolist(), total.tolist(), strict=True):
        of_scope, at = divmod(number, max(len(formats), 1))
        known = formats[at]
        if known is not None:
            by_format = shares.setdefault(of_scope, {}).setdefault(bool(matrix[at]), {})
            by_format[known] = by_format.get(known, 0.0) + amount
    for of_scope, found in shares.items():
        chosen = found.get(True) or found[False]
        names = tuple(sorted(chosen, key=lambda name: (-chosen[name], name)))
        values[of_scope] = names if len(names) > 1 else names[0]
    return values
