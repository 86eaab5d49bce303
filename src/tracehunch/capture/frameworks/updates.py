"""Where a step of a training ends, seen from outside: before the first forward after the optimizer's update.

An optimizer's own hooks run inside its annotation (``Optimizer.step#AdamW.step``): a step that ended there
would cut it in two. So an update is only noted there, and the step ends when the next module is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.capture.torch_env import import_torch

if TYPE_CHECKING:
    from collections.abc import Callable


class Updates:
    """Calls ``ended`` after each update of the parameters, until ``detach``.

    Updates are counted of the optimizer that steps first, so that a second one (of a discriminator) does not
    count its steps again. ``seen`` once one has stepped.
    """

    def __init__(self, ended: Callable[[], object]) -> None:
        self._ended = ended
        self._counted: Any = None
        import_torch()
        from torch.nn.modules.module import register_module_forward_pre_hook  # noqa: PLC0415  # torch is optional
        from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: PLC0415  # as above

        self._before_next_forward = register_module_forward_pre_hook
        self._next_forward: Any = None
        self._updates: Any = register_optimizer_step_post_hook(self._updated)

    @property
    def seen(self) -> bool:
        """Whether an optimizer has stepped."""
        return self._counted is not None

    def end_step(self) -> None:
        """End the step here if its update is done."""
        if self._next_forward is not None:
            self._next_forward.remove()
            self._next_forward = None
            self._ended()

    def detach(self) -> None:
        """Leave no hook behind."""
        for hook in (self._updates, self._next_forward):
            if hook is not None:
                hook.remove()
        self._updates = self._next_forward = None

    def _updated(self, optimizer: Any, *_: Any) -> None:
        if self._counted is None:
            self._counted = optimizer
        if optimizer is self._counted and self._next_forward is None:
            self._next_forward = self._before_next_forward(self._forward)

    def _forward(self, *_: Any) -> None:
        self.end_step()
