"""Which backend attention ran on, from ops, and from kernels where the ops are not in the file."""

import re
from typing import Final

import numpy as np

from tracehunch.facts.activities import Use
from tracehunch.facts.column import Bool, Words
from tracehunch.facts.context import Context
from tracehunch.tree import NONE, Api, Link, work_of
from tracehunch.tree.names import names_that

BACKENDS: Final = ("math", "flash", "efficient", "cudnn", "flex", "overrideable")
NO_ATTENTION: Final = "none"

_OPS: Final = (
    ("math", r"aten::_scaled_dot_product_attention_math\w*"),
    ("flash", r"aten::(?:_scaled_dot_product_flash|_flash)_attention\w*|flash_attn\w*::\w+|_?FlashAttn\w*"),
    (
        "efficient",
        r"aten::(?:_scaled_dot_product_efficient|_efficient)_attention\w*|xformers\w*::efficient_attention\w*",
    ),
    ("cudnn", r"aten::(?:_scaled_dot_product_cudnn|_cudnn)_attention\w*"),
    ("overrideable", r"aten::_scaled_dot_product_fused_attention_overrideable\w*"),
    ("flex", r"triton_\w*flex_(?:attention|decoding)\w*|flex_attention\w*"),
)
_COMPILED: Final = tuple((backend, re.compile(pattern)) for backend, pattern in _OPS)

_LIBRARIES: Final = {
    "flash-attention": "flash",
    "mem-efficient": "efficient",
    "cudnn": "cudnn",
    "inductor": "flex",
}
"""Library of an attention kernel -> backend; others serve several (AOTriton) or are no SDPA backend's."""


def backend_of_op(name: str) -> str | None:
    """Return the backend that an op belongs to, forward or backward; None for all others."""
    return next((backend for backend, pattern in _COMPILED if pattern.fullmatch(name)), None)


def backend_of_kernel(use: Use) -> str | None:
    """Return the backend that a kernel's name tells; None for others, and for those of several backends."""
    return _LIBRARIES.get(use.identity.library) if use.is_attention else None


def words(context: Context) -> list[Words]:
    """``sdpa.backend`` per scope: absent where neither ops nor kernels can tell."""
    found = np.logical_or(_by_ops(context), _by_kernels(context))
    told = _told(context, np.any(found, axis=1))
    values: dict[int, str | tuple[str, ...]] = {}
    for scope in np.flatnonzero(told).tolist():
        names = tuple(BACKENDS[code] for code in np.flatnonzero(found[scope]).tolist())
        values[scope] = names if len(names) > 1 else names[0] if names else NO_ATTENTION
    return [Words("sdpa.backend", values)]


def _by_ops(context: Context) -> Bool:
    """(scope, backend) by the ops inside, on the scope's thread or autograd's."""
    trace, ops = context.trace, context.tree.ops
    found = np.zeros((len(context.scopes), len(BACKENDS)), dtype=bool)
    if not ops.size:
        return found
    candidates = names_that(trace, lambda name: "attention" in name or "lash" in name or "flex_" in name)
    code_of_name = {name: backend_of_op(trace.names[name]) for name in np.flatnonzero(candidates).tolist()}
    for code, backend in enumerate(BACKENDS):
        names = [name for name, of in code_of_name.items() if of == backend]
        rows = ops[np.isin(trace.name[ops], names)] if names else ops[:0]
        if rows.size:
            n = context.ownership.layout(work_of(trace, rows, context.tree.engine)).sums()[0]
            found[:, code] = _per_scope(context, n > 0)
    return found


def _by_kernels(context: Context) -> Bool:
    """(scope, backend) by attention kernels: for graph replays, compiled and foreign code."""
    pairs, gpu = context.ownership.gpu.pairs, context.gpu
    found = np.zeros((len(context.scopes), len(BACKENDS)), dtype=bool)
    names = [backend_of_kernel(use) for use in gpu.uses]
    code = np.array([NONE if name is None else BACKENDS.index(name) for name in names], dtype=np.int64)
    known = code[gpu.use[pairs.item]] if gpu.uses else np.zeros(0, dtype=np.int64)
    found[context.pair_scope[known != NONE], known[known != NONE]] = True
    return found


def _told(context: Context, found: Bool) -> Bool:
    """Scopes whose backend is known: attention was found, or all that ran is known and none was."""
    has_ops = _per_scope(context, context.ownership.ops.sums()[0] > 0)
    if not context.gpu.row.size:
        return found | has_ops
    unclear = _per_scope(context, context.ownership.gpu.sums(_mute(context))[0] > 0)
    ambiguous = np.array(
        [use.is_attention and backend_of_kernel(use) is None for use in context.gpu.uses], dtype=bool
    )
    foreign = _per_scope(context, context.ownership.gpu.sums(context.gpu.of_uses(ambiguous))[0] > 0)
    seen = _per_scope(context, context.gpu_known)
    return found | (has_ops & seen & ~unclear & ~foreign)


def _mute(context: Context) -> Bool:
    """Find activities of unknown ops that may be of an unfused attention: of graph replays, or unlinked."""
    tree, gpu = context.tree, context.gpu
    launch = tree.launch[gpu.row]
    graph = (launch != NONE) & (tree.api[launch] == Api.GRAPH)
    lost = (tree.link[gpu.row] == Link.UNLINKED) | (tree.link[gpu.row] == Link.AMBIGUOUS)
    mute: Bool = (gpu.op == NONE) & (graph | lost)
    return mute


def _per_scope(context: Context, of_call: Bool) -> Bool:
    return np.bincount(context.scope_of_call, weights=of_call, minlength=len(context.scopes)) > 0
