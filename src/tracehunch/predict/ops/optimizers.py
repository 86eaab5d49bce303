"""Operations on lists of tensors, as optimizers make them: few kernels, each over many tensors.

A launch takes so many tensors of each list, and so many chunks of 65,536 elements, as its arguments have room
for. Source: PyTorch's multi_tensor_apply; the launches of 2,159 calls on an H200 were told exactly.
"""

from collections.abc import Sequence
from typing import Final

from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.singly import norms_singly, singly, taken_singly
from tracehunch.predict.ops.steps import Call, Steps, fresh, joined, kernel, unknown
from tracehunch.predict.ops.tensor import Tensor

_CHUNK: Final = 65_536
_MOST_CHUNKS: Final = 320
_FUSED_FLOPS: Final = 16  # of an element
_MOST_TENSORS: Final = (110, 64, 48, 36, 30)
"""By the number of lists that a kernel works on."""

_LISTS: Final = {
    "_foreach_lerp_": 2, "_foreach_addcmul_": 3, "_foreach_addcdiv_": 3, "_foreach_copy_": 2,
    "_foreach_lerp": 2, "_foreach_addcmul": 3, "_foreach_addcdiv": 3, "_foreach_copy": 2,
    "_fused_adamw_": 4, "_fused_adam_": 4, "_fused_sgd_": 3, "_fused_adagrad_": 3,
}  # fmt: skip
"""Lists that are given; of others one, or two where no number is given."""

_ALONE: Final = (
    "sqrt", "neg", "zero", "reciprocal", "abs", "exp", "log", "sign", "rsqrt", "sigmoid", "tanh", "expm1",
    "log10", "log1p", "log2", "ceil", "floor", "round", "trunc", "frac", "erf", "erfc", "cos", "sin", "tan",
    "acos", "asin", "atan", "cosh", "sinh", "lgamma",
)  # fmt: skip
_PAIRS: Final = ("add", "sub", "mul", "div", "maximum", "minimum", "clamp_max", "clamp_min", "pow")

LISTED: Final = (
    *_LISTS,
    *(f"_foreach_{name}{end}" for name in (*_ALONE, *_PAIRS) for end in ("", "_")),
)
_STEPS: Final = "state_steps"


def foreach(call: Call) -> Steps:
    """Work element by element on lists, their tensors given one list after the other."""
    given, first = _lists(call)
    if not first:
        return unknown(f"the lists of {call.name} are not of one length, or their sizes were not recorded")
    if taken_singly(call):
        return singly(call)
    # out of place, the results are a list of their own
    lists = given if call.name.endswith("_") else given + 1
    moves = lists + _written(call.name)
    if call.name.startswith("_fused"):
        return _launches(first, lists, moves, family="fused_lists", flops=_FUSED_FLOPS)
    return _launches(first, lists, moves)


def foreach_norm(call: Call) -> Steps:
    """Sum up chunks, into memory that starts as zeros, then what chunks left."""
    if not call.tensors:
        return unknown("the sizes of the list were not recorded")
    if taken_singly(call):
        return norms_singly(call)
    sums = fill_kernel(fresh((len(call.tensors),), "fp32"))
    cleanup = kernel("lpnorm_cleanup", "reduction", "tiny", 0)
    return joined([sums, _launches(call.tensors, 1, 1, flops=2), cleanup])


def unscale(call: Call) -> Steps:
    """Divide gradients by the scale, and note what is not finite: one kernel over a list."""
    _, first = _lists(call)
    tensors = first or call.tensors[:-2]  # then the flag and the scale
    return _launches(tensors, 1, 2) if tensors else unknown("the sizes of the list were not recorded")


def _lists(call: Call) -> tuple[int, Sequence[Tensor]]:
    """Return how many lists a kernel works on, and the first; none where lists are not of one length."""
    lengths = call.option("list_lengths")
    if lengths:
        count = next(iter(lengths.values()))
        same = [name for name, length in lengths.items() if length == count and name != _STEPS]
        return len(same), call.tensors[:count]
    given = _given(call)
    if not call.tensors or len(call.tensors) % given:
        return given, ()
    return given, call.tensors[: len(call.tensors) // given]


def _given(call: Call) -> int:
    if call.name in _LISTS:
        return _LISTS[call.name]
    numbers = any(call.option(name) is not None for name in ("scalar", "other", "value", "exponent"))
    alone = call.name.rstrip("_").removeprefix("_foreach_") in _ALONE
    return 1 if numbers or alone else 2


def _written(name: str) -> int:
    """Return how many lists are read and written both; lists of results are counted already."""
    if name.startswith("_fused"):
        return _LISTS[name] - 1  # all but the gradients
    return int(name.endswith("_") and name not in ("_foreach_zero_", "_foreach_copy_"))


def _launches(
    tensors: Sequence[Tensor], lists: int, moves: int, *, family: str = "lists", flops: int = 1
) -> Steps:
    """Return the kernels over lists like this one, which read or write the elements so many times."""
    room = _MOST_TENSORS[min(lists, len(_MOST_TENSORS)) - 1]
    made: list[Steps] = []
    held = chunks = elements = 0

    def launch() -> None:
        moved = elements * moves * tensors[0].itemsize
        made.append(
            kernel(
                "multi_tensor_apply_kernel", "elementwise", family, moved, flops=flops * elements,
                dtype=tensors[0].dtype, items=elements,
            )
        )  # fmt: skip

    for one in tensors:
        held += one.numel > 0
        for first in range(0, one.numel, _CHUNK):
            chunks += 1
            elements += min(_CHUNK, one.numel - first)
            last = first + _CHUNK >= one.numel
            if (held == room and last) or chunks == _MOST_CHUNKS:
                launch()
                chunks = elements = 0
                held = 0 if last else 1
    if chunks:
        launch()
    return joined(made)
