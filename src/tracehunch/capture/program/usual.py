"""Decisions by values that no recording without values knows, and that nearly always fall one way."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def usual_outcomes(torch: Any) -> Iterator[None]:
    """Take gradients as finite, so that `GradScaler` steps, and truncated normals as in range at once."""

    def step(_: Any, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        for found in state["found_inf_per_device"].values():
            found.item()
        return optimizer.step(*args, **kwargs)

    def drawn(tensor: Any, *_: Any, **__: Any) -> Any:
        with torch.no_grad():
            return tensor.normal_()

    with ExitStack() as stack:
        stack.enter_context(patch.object(torch.amp.GradScaler, "_maybe_opt_step", step))
        stack.enter_context(patch.object(torch.nn.init, "_no_grad_trunc_normal_", drawn))
        yield
