"""fusion-missed: elementwise kernels run one by one where torch.compile was to merge them.

## What it means
Inside a compiled function the trace shows kernels of ordinary ops (`aten::mul`, `aten::mean` and such)
where Inductor would generate one kernel for several (`triton_poi_fused_gelu_mul_0` lists what it merged).
The finding says which case it is: generated code calls the op because Inductor has no code for it (complex
numbers, some types); the ops stand between two compiled graphs, after a graph break or in a function that is
not to be compiled; nothing was generated at all, as with `backend="aot_eager"`; or Dynamo looked for
compiled code, found none and ran the function as it is (`recompile_limit` reached).

## Why it costs
Each kernel reads its inputs from memory and writes its result back. A merged kernel reads and writes once.

## How to confirm
Look below `Torch-Compiled Region` for `aten::` ops beside `## Call CompiledFxGraph`. In the environment,
`TORCH_LOGS=graph_breaks` names each break and its line, `TORCH_LOGS=recompiles` what made Dynamo give up, and
`TORCH_LOGS=output_code` shows the calls that Inductor left to PyTorch (`extern_kernels`, `torch.ops.aten`).

## How to fix
Write complex arithmetic in real numbers. Remove the graph break: no `print`, `.item()`, or code from outside
PyTorch between tensor ops (`fullgraph=True` names the first). Let Dynamo compile what
`torch.compiler.disable` keeps out. Keep shapes and Python values from changing, or make them dynamic, so that
the limit of versions is not reached.

## When it is fine
Where the break has to be, as at a value that the program needs. Ops that cannot be merged anyway (sorting,
products, attention) are not counted.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from tracehunch.checks._ancestry import called_op
from tracehunch.checks._eager_kernels import Place, eager_kernels
from tracehunch.checks._scopes import by_call_us, place
from tracehunch.checks._weight import is_material, is_noticeable, severity
from tracehunch.checks._words import at_source
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.units import join, plural, time_us
from tracehunch.verdict import CannotTell, Finding

ID: Final = "fusion-missed"
_SHOWN: Final = 5

_WHERE: Final[Mapping[int, str]] = {
    Place.IN_GRAPH: "generated code calls ordinary ops",
    Place.BETWEEN_GRAPHS: "ordinary ops run between compiled graphs",
    Place.NO_GRAPH: "a compiled function runs ordinary ops only",
    Place.NOT_FOUND: "a function that Dynamo found no compiled code for runs ordinary ops",
}
_CAUSE: Final[Mapping[int, str]] = {
    Place.IN_GRAPH: "Inductor has no code of its own for these ops on such inputs (complex numbers, some "
    "types), so that they stay kernels of PyTorch.",
    Place.BETWEEN_GRAPHS: "The function is compiled in parts, and these ops lie between them: after a graph "
    "break, or in a function that torch.compiler.disable keeps out.",
    Place.NO_GRAPH: 'Nothing was generated for it: another backend than Inductor (backend="aot_eager", '
    '"eager"), or the whole of it is left out of the graph.',
    Place.NOT_FOUND: "Dynamo looked for compiled code and found none, yet did not compile: most likely the "
    "limit of versions of one function (recompile_limit, 8) was reached. Where the function ends is not in "
    "the trace: ops are counted to the end of the annotation around it.",
}
_FIX: Final[Mapping[int, str]] = {
    Place.IN_GRAPH: "Write what was not fused in ops that Inductor generates code for: complex arithmetic in "
    "real numbers, types that Triton knows. TORCH_LOGS=output_code shows what it leaves to PyTorch.",
    Place.BETWEEN_GRAPHS: "TORCH_LOGS=graph_breaks names each break and its line; fullgraph=True makes a "
    "break an error. Move print, .item() and foreign code out of the function.",
    Place.NO_GRAPH: "Compile with the default backend: torch.compile(model).",
    Place.NOT_FOUND: "TORCH_LOGS=recompiles names the guards that failed: make the sizes that vary dynamic "
    "(torch._dynamo.mark_dynamic, dynamic=True) and keep Python values constant.",
}


def check(facts: Facts) -> Iterable[Finding | CannotTell]:
    """Find fusible kernels of ordinary ops in compiled functions, by scope and by where they ran."""
    found = eager_kernels(facts)
    if not found.rows.size and not found.unknown.size:
        return
    where = place(facts)
    for scope, kind, rows in where.groups(found.rows, found.place):
        saved = float(found.saved_us[np.isin(found.rows, rows)].sum()) / len(scope.scope.calls)
        if is_noticeable(facts, scope, saved):
            yield _finding(facts, scope, kind, rows, saved)
    for scope, rows in where.by_scope(found.unknown):
        spent = where.per_call_us(scope, rows)
        if is_material(facts, scope, spent):
            number = plural(round(rows.size / len(scope.scope.calls), 1), "elementwise kernel")
            reason = (
                f"{number} of PyTorch a call ({time_us(spent)}) ran in compiled code: which ops they are is "
                "not in the trace"
            )
            yield CannotTell(ID, scope.scope.name, reason, "a run without the CUDA graph")


def _finding(facts: Facts, scope: ScopeFacts, kind: int, rows: Int64, saved: float) -> Finding:
    tree = facts.tree
    number = round(rows.size / len(scope.scope.calls), 1)
    ops = np.unique(called_op(tree, rows))
    in_time = ops[np.argsort(tree.trace.start_ns[ops], kind="stable")]
    names = list(dict.fromkeys(tree.trace.name_of(int(op)) for op in in_time))
    shown = [*names[:_SHOWN], *(["others"] if len(names) > _SHOWN else [])]
    return Finding(
        id=ID,
        scope=scope.scope.name,
        severity=severity(facts, scope, rows, saved),
        confidence="low" if kind == Place.NOT_FOUND else "medium",
        time_at_stake_us=saved,
        summary=f"{_WHERE[kind]}: {plural(number, 'kernel')} a call of {join(shown)}, "
        f"{time_us(float(by_call_us(facts, scope, rows).mean()))}{at_source(tree, int(rows[0]))}",
        cause=f"{_CAUSE[kind]} At stake is their time, less the longest of each run of them that has no "
        "generated kernel beside it: a merged kernel takes about as long as the longest of its parts.",
        fix=_FIX[kind],
        evidence=tree.trace.events(np.concatenate([rows, ops])),
        subject=", ".join(sorted(names)),
        per_call=number,
    )
