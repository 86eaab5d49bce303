"""Nested tensors: how long their parts are is in values, so nothing of what they run is recorded."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.capture.program.tape import Tape

_MAKERS: Final = ("nested_tensor", "as_nested_tensor", "nested_tensor_from_jagged", "narrow", "masked_select")
_NESTED: Final = "a nested tensor is made: the sizes of its parts are not recorded"
_PADDED: Final = "guess the program with padded tensors and a mask"
_MASKED: Final = "a transformer encoder packs what a padding mask leaves into a nested tensor, if it can"
_UNPACKED: Final = "build nn.TransformerEncoder with enable_nested_tensor=False, or guess it without the mask"


@contextmanager
def jagged(torch: Any, tape: Tape) -> Iterator[None]:
    """Stop where a nested tensor is made."""

    def stops(reason: str, remedy: str) -> Callable[..., None]:
        def stop(*_: Any, **__: Any) -> None:
            raise tape.stop(reason, remedy)

        return stop

    with ExitStack() as stack:
        for name in _MAKERS:
            if hasattr(torch.nested, name):
                stack.enter_context(patch.object(torch.nested, name, stops(_NESTED, _PADDED)))
        masked = "_nested_tensor_from_mask_left_aligned"
        stack.enter_context(patch.object(torch, masked, stops(_MASKED, _UNPACKED)))
        yield
