"""Nested tensors: how long their parts are is in values, so nothing of what they run is recorded."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.capture.program.known import Known
    from tracehunch.capture.program.tape import Tape

_MAKERS: Final = ("nested_tensor", "as_nested_tensor", "nested_tensor_from_jagged", "narrow", "masked_select")
_NESTED: Final = "a nested tensor is made: the sizes of its parts are not recorded"
_PADDED: Final = "guess the program with padded tensors and a mask"
_MASKED: Final = "a transformer encoder packs what a padding mask leaves into a nested tensor, if it can"
_UNPACKED: Final = "build nn.TransformerEncoder with enable_nested_tensor=False, or guess it without the mask"


@contextmanager
def jagged(torch: Any, tape: Tape, known: Known) -> Iterator[None]:
    """Stop where a nested tensor is made."""

    def stops(reason: str, remedy: str) -> Callable[..., None]:
        def stop(*_: Any, **__: Any) -> None:
            raise tape.stop(reason, remedy)

        return stop

    changes = {
        "_nested_tensor_from_mask_left_aligned": _aligned(torch, tape, known),
        "_nested_tensor_from_mask": stops(_MASKED, _UNPACKED),
    }
    with ExitStack() as stack:
        for name in _MAKERS:
            if hasattr(torch.nested, name):
                stack.enter_context(patch.object(torch.nested, name, stops(_NESTED, _PADDED)))
        for name, instead in changes.items():
            stack.enter_context(patch.object(torch, name, instead))
        yield


def _aligned(torch: Any, tape: Tape, known: Known) -> Callable[[Any, Any], bool]:
    """Return what asks whether each row of a mask is ones, then zeros; those that are not known are.

    Source: `NestedTensor_nested_tensor_from_mask_left_aligned` in ATen/native/nested/NestedTensorMath.cpp.
    """

    def aligned(_: Any, mask: Any) -> bool:
        end = torch.zeros((mask.shape[0], 1), dtype=mask.dtype, device=mask.device)
        ends = torch.cat([mask, end], 1).to(torch.int32).argmin(1)
        lengths = mask.cumsum(1).select(1, -1)
        if known.of(ends) is not None and known.of(lengths) is not None:
            return bool(torch.equal(lengths, ends))
        tape.note_named("aten::equal", [lengths, ends], None)
        return True

    return aligned
