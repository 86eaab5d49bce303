"""Changes that the recorded inputs, launches and copies explain."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tracehunch.compare.beside import beside_causes
from tracehunch.compare.collectives import is_collective
from tracehunch.compare.inputs import Tensor, inputs_of, inputs_text, usual_inputs
from tracehunch.compare.kernel_words import blocks, blocks_words
from tracehunch.compare.model import Cause
from tracehunch.trace.model import Cat
from tracehunch.tree import NONE, Tree
from tracehunch.units import bandwidth, join, printable, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.causes import Scene
    from tracehunch.compare.model import Change, Use
    from tracehunch.compare.sdpa_calls import SdpaDiff

_COPYING: Final = ("aten::copy_", "aten::clone", "aten::contiguous", "aten::_to_copy")
_HEADS_DIMENSION: Final = 2  # of (batch, key heads, repeats, length, head dimension)


def input_causes(change: Change, before: Tree, after: Tree, *, same_environment: bool) -> Iterator[Cause]:
    """Say that ops got other shapes, kernels other grids, copies other sizes; or that none of it changed."""
    rows = [[row for use in uses for row in use.rows] for uses in (change.before, change.after)]
    first, second = usual_inputs(before, rows[0]), usual_inputs(after, rows[1])
    found = False
    if any(is_collective(use.identity) for use in change.after):
        yield Cause("waiting", "a collective's time holds the wait for the slowest rank", "medium")
        return
    if first and second and not _alike(first, second) and _same_op(change):
        found = True
        yield Cause("inputs", _other_inputs(change, first, second))
    grids = blocks_words(blocks(before.trace, change.before), blocks(after.trace, change.after))
    if grids and change.kind in ("slower", "faster"):
        found = True
        yield Cause("grid", grids)
    for cause in _bytes(change, before, after):
        found = True
        yield cause
    if change.kind not in ("slower", "faster") or found:
        return
    for cause in beside_causes(change, before, after):
        found = True
        yield cause
    if not found and same_environment:
        yield _unexplained("op" if _is_op(change) else "kernel", same_inputs=bool(first and second))


def inputs_of_its_op(change: Change, scene: Scene) -> Iterator[Cause]:
    """Say of what came or went that its op is called as before, but on other inputs."""
    uses = change.before or change.after
    if change.kind not in ("appeared", "went") or not uses or not uses[0].path:
        return
    paths = {use.path for use in uses}
    sides = [[use for use in ops if use.path in paths] for ops in (scene.ops_before, scene.ops_after)]
    if len(paths) != 1 or not all(sides) or sides[0][0].per_call != sides[1][0].per_call:
        return
    rows = [[row for use in side for row in use.rows] for side in sides]
    first, second = usual_inputs(scene.before, rows[0]), usual_inputs(scene.after, rows[1])
    if first and second and not _alike(first, second):
        yield Cause("inputs", f"its op's inputs are {inputs_text(second)}, they were {inputs_text(first)}")


def copied_input(change: Change, before: Tree, after: Tree, sdpa: SdpaDiff | None) -> Iterator[Cause]:
    """Say what is copied where an expanded tensor is written out."""
    tree, uses = (after, change.after) if change.after else (before, change.before)
    if change.kind not in ("appeared", "went", "more", "fewer") or not uses or uses[0].op not in _COPYING:
        return
    tensor = _outermost_input(tree, uses[0])
    if tensor is None or tensor.repeated is None:
        return
    at, times = tensor.repeated
    text = (
        f"it writes out an expanded tensor ({tensor}, dimension {at} repeated {times} times without memory)"
    )
    if len(tensor.shape) == 5 and at == _HEADS_DIMENSION and sdpa is not None:  # as repeat_kv makes it
        text += (
            ", as repeat_kv does to give each query head its own key and value; enable_gqa=True needs no copy"
        )
    yield Cause("expanded-copy", text)


def _alike(first: Counter[tuple[str, ...]], second: Counter[tuple[str, ...]]) -> bool:
    """Whether both hold the same inputs, an out= of one side aside."""
    if set(first) == set(second):
        return True
    n = min(len(inputs) for inputs in (*first, *second))
    return n > 1 and {one[:n] for one in first} == {one[:n] for one in second}


def _other_inputs(change: Change, first: Counter[tuple[str, ...]], second: Counter[tuple[str, ...]]) -> str:
    """Name the inputs that came or went; all of them where none stayed."""
    gone = Counter({one: n for one, n in first.items() if one not in second})
    new = Counter({one: n for one, n in second.items() if one not in first})
    if change.kind == "fewer" and gone and not new:
        return f"no longer on {inputs_text(gone)}"
    if change.kind == "more" and new and not gone:
        return f"also on {inputs_text(new)}"
    return f"its inputs are {inputs_text(second)}, they were {inputs_text(first)}"


def _outermost_input(tree: Tree, use: Use) -> Tensor | None:
    """Return the first input of the op that the program called."""
    if not use.rows:
        return None
    row = int(tree.op[use.rows[0]])
    chain = [row, *tree.ancestors(row)] if row != NONE else []
    ops = [one for one in chain if tree.trace.cat[one] == Cat.CPU_OP][: len(use.path)]
    inputs = inputs_of(tree, ops[-1]) if ops else ()
    return inputs[0] if inputs else None


def _same_op(change: Change) -> bool:
    return {use.op for use in change.before} == {use.op for use in change.after}


def _bytes(change: Change, before: Tree, after: Tree) -> Iterator[Cause]:
    """Compare what copies move, and how fast."""
    copies = [[use for use in uses if use.kind == "memcpy"] for uses in (change.before, change.after)]
    names = [sorted({printable(use.name, 80) for use in uses}) for uses in copies]
    if not all(copies):
        return
    if names[0] != names[1]:
        yield Cause("copy", f"it copies by {join(names[1])}, before by {join(names[0])}")
    first, second = _moved(before, copies[0]), _moved(after, copies[1])
    if first is None or second is None:
        return
    if first[0] != second[0]:
        yield Cause("bytes", f"a copy moves {size(second[0])}, it moved {size(first[0])}")
    elif change.kind in ("slower", "faster", "kernel", "replaced"):
        yield Cause(
            "bandwidth", f"{bandwidth(first[1])} -> {bandwidth(second[1])} for {size(first[0])} a copy"
        )


def _moved(tree: Tree, uses: Sequence[Use]) -> tuple[int, float] | None:
    """Bytes a copy (the median), and bytes per second over all; None where not recorded."""
    gpu = tree.trace.gpu
    at = np.flatnonzero(np.isin(gpu.row, [row for use in uses for row in use.rows]))
    sizes, lengths = gpu.bytes[at], tree.trace.dur_ns[gpu.row[at]]
    if not at.size or (sizes < 0).any() or lengths.sum() <= 0:
        return None
    return int(np.sort(sizes)[(at.size - 1) // 2]), float(sizes.sum()) * 1e9 / float(lengths.sum())


def _is_op(change: Change) -> bool:
    """Tell changes of ops, which have no kernel and no launch, as in a trace of a CPU."""
    return all(use.kind == "op" for use in (*change.before, *change.after))


def _unexplained(what: Literal["op", "kernel"], *, same_inputs: bool) -> Cause:
    if same_inputs:
        same = {"op": "same op, calls and inputs", "kernel": "same kernel, launches and inputs"}[what]
        text = f"{same}: clocks, power, caches, or work that runs beside it"
        return Cause("same-kernel", text, "medium")
    text = f"the same {what} as often; whether its inputs differ, record_shapes=True on both sides would tell"
    return Cause("inputs-unknown", text, "low")
