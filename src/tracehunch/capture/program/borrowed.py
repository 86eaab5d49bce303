"""The user's own tensors, lent to a recording: modules and optimizers get them back as they were."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tracehunch.capture.program.target import Call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.capture.program.known import Known


@contextmanager
def borrowed(torch: Any, known: Known, call: Call, held: list[Any]) -> Iterator[Call]:
    """Put tensors without data into what the callable holds, and yield the call with such arguments."""
    lent = _Lent(torch, known)
    try:
        for one in held:
            lent.lend(one)
        yield Call(call.run, lent.stand_in(tuple(call.args)), lent.stand_in(dict(call.kwargs)))
    finally:
        lent.give_back()


class _Lent:
    """Tensors and what stands for them; `_owners` are dictionaries and what they held."""

    def __init__(self, torch: Any, known: Known) -> None:
        self._torch = torch
        self._known = known
        self._made: dict[int, tuple[Any, Any]] = {}
        self._owners: list[tuple[dict[Any, Any], dict[Any, Any]]] = []

    def lend(self, held: Any) -> None:
        """Exchange the tensors of a module or an optimizer."""
        if isinstance(held, self._torch.nn.Module):
            for module in held.modules():
                self._exchange(module._parameters)  # noqa: SLF001  # where they are held
                self._exchange(module._buffers)  # noqa: SLF001  # as above
                self._exchange(module.__dict__)
        else:
            for group in held.param_groups:
                self._exchange(group)
            state = {self.stand_in(key): self.stand_in(value) for key, value in held.state.items()}
            self._owners.append((held.state, dict(held.state)))
            held.state.clear()
            held.state.update(state)

    def give_back(self) -> None:
        """Put everything back."""
        for owner, was in reversed(self._owners):
            owner.clear()
            owner.update(was)

    def stand_in(self, value: Any) -> Any:
        """Return what stands for a value: tensors on the GPU without data, in lists and dictionaries too."""
        torch = self._torch
        if torch.is_tensor(value):
            if id(value) not in self._made:
                self._made[id(value)] = (value, self._tensor(value))
            return self._made[id(value)][1]
        if type(value) in (list, tuple):
            return type(value)(self.stand_in(one) for one in value)
        if type(value) is dict:
            return {key: self.stand_in(one) for key, one in value.items()}
        return value

    def _exchange(self, owner: dict[Any, Any]) -> None:
        changed = {key: self.stand_in(value) for key, value in owner.items() if self._has_tensors(value)}
        if changed:
            self._owners.append((owner, dict(owner)))
            owner.update(changed)

    def _has_tensors(self, value: Any) -> bool:
        if type(value) in (list, tuple):
            return any(self._torch.is_tensor(one) for one in value)
        return bool(self._torch.is_tensor(value))

    def _tensor(self, real: Any) -> Any:
        torch = self._torch
        place = {"dtype": real.dtype, "device": torch.device("cuda", 0)}
        made = torch.empty_strided(real.shape, real.stride(), **place)
        if real.device.type == "cpu":
            copied = self._known.aside(lambda: real.detach().clone())
            if copied is not None and self._known.fits(copied):
                self._known.keep(made, copied)
        if isinstance(real, torch.nn.Parameter):
            return torch.nn.Parameter(made, requires_grad=real.requires_grad)
        return made.requires_grad_(real.requires_grad and real.is_leaf)
