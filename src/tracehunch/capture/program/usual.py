"""Decisions by values that no recording without values knows, and that nearly always fall one way."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tracehunch.capture.program.unknown import is_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def unpadded() -> Iterator[None]:
    """Take no input as padded, where a library that is loaded by now only warns of it. It still looks."""
    loaded = sys.modules.get("transformers.modeling_utils")
    name = "warn_if_padding_and_no_attention_mask"
    owner = getattr(loaded, "PreTrainedModel", None)

    def looks(self: Any, input_ids: Any, attention_mask: Any) -> None:
        if attention_mask is None and self.config.pad_token_id is not None:
            (input_ids[:, [-1, 0]] == self.config.pad_token_id).any().item()

    if hasattr(owner, name):
        with patch.object(owner, name, looks):
            yield
    else:
        yield


@contextmanager
def usual_outcomes(torch: Any) -> Iterator[None]:
    """Take gradients as finite, so that `GradScaler` steps, and truncated normals as in range at once.

    What a library checks (`torch._check`, the parameters of a distribution) is taken to hold.
    """

    def step(_: Any, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        for found in state["found_inf_per_device"].values():
            found.item()
        return optimizer.step(*args, **kwargs)

    def drawn(tensor: Any, *_: Any, **__: Any) -> Any:
        with torch.no_grad():
            return tensor.normal_()

    check, all_true = torch._check_with, torch._is_all_true  # noqa: SLF001  # what libraries check with

    def checked(error: Any, condition: Any, *args: Any) -> None:
        check(error, True if is_unknown(condition) else condition, *args)

    def valid(flags: Any) -> Any:
        found = all_true(flags).item()
        return True if is_unknown(found) else found

    with ExitStack() as stack:
        stack.enter_context(patch.object(torch, "_check_with", checked))
        stack.enter_context(patch.object(torch, "_is_all_true", valid))
        stack.enter_context(patch.object(torch.amp.GradScaler, "_maybe_opt_step", step))
        stack.enter_context(patch.object(torch.nn.init, "_no_grad_trunc_normal_", drawn))
        yield
