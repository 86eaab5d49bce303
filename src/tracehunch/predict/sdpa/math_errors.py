"""The errors that SDPA's math composition ends in: the checks of its steps, in order."""

from typing import Final

from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.shapes import Misfit, Shape, add_in_place, matmul

CAUSAL_AND_MASK: Final = (
    "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
)
HEADS_DO_NOT_DIVIDE: Final = "Number of heads in key and value must divide the number of heads in "
_GROUPED_DIMS: Final = 3


def math_error(call: SdpaCall) -> str | None:
    """Return the error that the math composition ends in, None for none."""
    if call.is_causal and call.mask is not None:
        return CAUSAL_AND_MASK
    shapes = _key_value_shapes(call)
    if isinstance(shapes, Misfit):
        return shapes.error
    key, value = shapes
    scores = matmul(call.q.shape, (*key[:-2], key[-1], key[-2]))
    if isinstance(scores, Misfit):
        return scores.error
    if call.mask is not None:
        misfit = add_in_place(scores, call.mask.shape)
        if misfit is not None:
            return misfit.error
    if call.dropout > 1.0:
        return f"dropout probability has to be between 0 and 1, but got {call.dropout:g}"
    result = matmul(scores, value)
    return result.error if isinstance(result, Misfit) else None


def _key_value_shapes(call: SdpaCall) -> tuple[Shape, Shape] | Misfit:
    """Return the shapes of key and value with their heads repeated."""
    shapes = tuple(given.shape for given in call.inputs)
    if not call.enable_gqa:
        return shapes[1], shapes[2]
    for shape in shapes:
        if len(shape) < _GROUPED_DIMS:
            low, high = -len(shape), len(shape) - 1
            bounds = f"[{low}, {high}], but got -{_GROUPED_DIMS}"
            return Misfit(f"Dimension out of range (expected to be in range of {bounds})")
    heads, *others = (shape[-_GROUPED_DIMS] for shape in shapes)
    if heads == others[0] == others[1]:
        return shapes[1], shapes[2]
    if any(count == 0 or heads % count for count in others):
        return Misfit(HEADS_DO_NOT_DIVIDE)
    key, value = ((*shape[:-3], heads, *shape[-2:]) for shape in shapes[1:])
    return key, value
