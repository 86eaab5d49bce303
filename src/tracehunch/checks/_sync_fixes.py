"""Why an op has to wait for the GPU, and what to write in its place."""

from dataclasses import dataclass
from typing import Final

from tracehunch.trace.model import Cat
from tracehunch.tree import Tree


@dataclass(frozen=True, slots=True)
class Remedy:
    """``cause``: why it waits, a sentence without its stop; ``fix``: what to write in its place."""

    cause: str
    fix: str


_VALUE: Final = Remedy(
    "hands a value of a tensor to Python",
    "Keep the value on the GPU (torch.where(c, a, b) in place of `if c:`); collect losses and metrics as "
    "tensors (loss.detach()) and read them once every so many steps.",
)
_SIZE: Final = Remedy(
    "makes a tensor whose size depends on values on the GPU",
    "Keep the size fixed: torch.where(mask, a, b) with all three arguments, x * mask or "
    "masked_fill(mask, v) in place of indexing by a mask; topk or a capacity per expert in place of nonzero.",
)
_REPEATS: Final = Remedy(
    "makes a tensor whose size is the sum of counts on the GPU",
    "Give the size, if the program knows it: torch.repeat_interleave(x, counts, output_size=n).",
)
_TO_HOST: Final = Remedy(
    "copies from the GPU and waits for the copy",
    "Copy into pinned memory with non_blocking=True, and wait once, for an event, when the values are "
    "needed.",
)
_TO_DEVICE: Final = Remedy(
    "copies to the GPU and waits for the copy",
    "Make the tensor on the GPU (torch.full, torch.arange with device=) or once, outside the loop; send what "
    "has to be sent from pinned memory with non_blocking=True.",
)
_PINNED: Final = Remedy(
    "copies from pinned memory and waits for the copy, though it need not",
    "Pass non_blocking=True; what runs later on the same stream sees the copied data all the same.",
)
_OTHER: Final = Remedy(
    "needs a value from the GPU",
    "Use a form of the op whose result does not depend on values that only the GPU knows.",
)
PRINTING: Final = Remedy(
    "The text of a tensor is made from its values, read one by one",
    "Print, log or format tensors outside the loop, or once every so many steps; print shapes instead.",
)
SYNCHRONISE: Final = Remedy(
    "The program itself waits for the GPU in the middle of its work",
    "Drop torch.cuda.synchronize(): work on a stream runs in order without it. To measure, record "
    "torch.cuda.Event(enable_timing=True) around the part and call elapsed_time() at the end.",
)
EDGE: Final = Remedy(
    "The program waits for the GPU between two steps",
    "A wait between steps is right for timing them. In production drop torch.cuda.synchronize(), so that the "
    "host can prepare the next step while the GPU works.",
)
LIBRARY: Final = Remedy(
    "The library waits, not the program",
    "See whether an option of the library turns the wait off; some libraries wait only in their first steps, "
    "to measure themselves.",
)

_BY_OP: Final = {
    **dict.fromkeys(("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"), _VALUE),
    **dict.fromkeys(("aten::equal", "aten::allclose", "aten::tolist"), _VALUE),
    "aten::repeat_interleave": _REPEATS,
}
_SIZED_BY_VALUES: Final = ("nonzero", "unique", "masked_select", "bincount", "argwhere")


def remedy(tree: Tree, op: int, wait: int) -> Remedy:
    """Say why an op that the program called waits, and what to write in its place."""
    name = tree.trace.name_of(op)
    found = _BY_OP.get(name) or _by_what_is_inside(tree, wait)
    return Remedy(f"{name} {found.cause}", found.fix)


def _by_what_is_inside(tree: Tree, wait: int) -> Remedy:
    inner = [tree.trace.name_of(row) for row in tree.ancestors(wait) if tree.trace.cat[row] == Cat.CPU_OP]
    if any(word in one for one in inner for word in _SIZED_BY_VALUES):
        return _SIZE
    if "aten::_local_scalar_dense" in inner:
        return _VALUE
    return _copy(tree, wait)


def _copy(tree: Tree, wait: int) -> Remedy:
    """Tell the direction of the copy that the op waits for from what it launched."""
    trace = tree.trace
    mine = trace.gpu.row[tree.op[trace.gpu.row] == tree.op[wait]]
    names = {trace.name_of(int(row)) for row in mine if trace.cat[row] == Cat.MEMCPY}
    if names == {"Memcpy HtoD (Pinned -> Device)"}:
        return _PINNED
    directions = {name.partition(" (")[0] for name in names}
    return (
        _TO_HOST if directions == {"Memcpy DtoH"} else _TO_DEVICE if directions == {"Memcpy HtoD"} else _OTHER
    )
