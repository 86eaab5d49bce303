"""Views that were changed in place: autograd then makes their part of the graph anew.

For plain tensors that is one step that places the gradient by strides, `as_strided_backward` in
torch/csrc/autograd/FunctionsManual.cpp. For tensors that Python handles, as those without data, it is the
operations that made the view, done again (`grad_fn` in variable.cpp): right after the one in place, or, for
other views of the same memory, when they are used. Their steps of the backward are recognised here, and what
a run does is done instead.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.program.tensors import recorded

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.capture.program.tensors import Arguments
    from tracehunch.predict.ops.tensor import Tensor


_VIEWS: Final = "_views"
_STALE: Final = "_stale_views"


@dataclass(slots=True)
class _View:
    """One of these views, and the sequence numbers of the steps that lead back from it to its base.

    `last` is the tensor that the next of the operations that make it again is done on; None when all are.
    """

    base: Tensor
    stale: list[weakref.ref[Any]]
    last: Any
    steps: list[int] = field(default_factory=list)
    view: Tensor | None = None
    placed: Any = None


class Regenerated:
    """Tells the steps of such views; `run` runs an operation unnoted, `note` runs and notes one."""

    def __init__(self, torch: Any, run: Callable[..., Any], note: Callable[..., Any]) -> None:
        self._torch, self._run, self._note = torch, run, note
        self._aten = torch.ops.aten
        self._sums = (torch.ops.aten.add.Tensor, torch.ops.aten.add_.Tensor)
        self._awaited: _View | None = None
        self._views: dict[int, _View] = {}
        self._placing = False

    def follow(self, func: Any, arguments: Arguments, outputs: list[Any]) -> None:
        """Note a call: one in place, one that makes a view, or makes it again."""
        if not self._torch.is_grad_enabled() or not arguments.tensors:
            self._awaited = None
            return
        if self._awaited is not None and self._continues(self._awaited, arguments, outputs):
            return
        self._awaited = None
        if arguments.mutated:
            self._changed(arguments)
        elif len(outputs) == 1 and _makes_view(func):
            self._viewed(arguments, outputs)

    def _changed(self, arguments: Arguments) -> None:
        """Note an operation in place: a view is made again at once, others of its base when they are used."""
        one = arguments.mutated[0]
        base = _base(one)
        if not any(each.requires_grad for each in arguments.tensors):
            return
        stale = [each for each in base.__dict__.get(_VIEWS, ()) if each() is not None]
        base.__dict__[_STALE] = [each for each in stale if each() is not one]
        if one is not base:
            self._awaited = _View(recorded(base), [weakref.ref(one)], base)

    def _viewed(self, arguments: Arguments, outputs: list[Any]) -> None:
        source = arguments.tensors[0]
        base = _base(source)
        if base.is_leaf:
            return  # none that is of the graph is changed in place
        stale = base.__dict__.get(_STALE)
        if source is base and stale:
            self._awaited = _View(recorded(base), stale, base)
            self._continues(self._awaited, arguments, outputs)
        base.__dict__.setdefault(_VIEWS, []).append(weakref.ref(outputs[0]))

    def _continues(self, found: _View, arguments: Arguments, outputs: list[Any]) -> bool:
        if len(outputs) != 1 or arguments.tensors[0] is not found.last:
            return False
        found.last = outputs[0]
        found.steps.append(self._torch._C._autograd._get_sequence_nr() - 1)  # noqa: SLF001  # as torch.fx does
        view = recorded(outputs[0])
        for each in found.stale:
            if (one := each()) is not None and recorded(one) == view:
                found.view, found.last, self._awaited = view, None, None
                found.stale.remove(each)
                if not (_overlaps(found.base) or _overlaps(view)):
                    self._views |= dict.fromkeys(found.steps, found)
                break
        return True

    def instead(self, func: Any, args: Any, kwargs: Any) -> tuple[Any] | None:
        """Return what a call of such a step returns, done as a run does it; None for all other calls."""
        if not self._views or self._placing or self._torch.is_grad_enabled() or func in self._sums:
            return None
        node = self._torch._C._current_autograd_node()  # noqa: SLF001  # nothing public tells
        step = None if node is None else node._sequence_nr()  # noqa: SLF001  # torch has no public way
        found = self._views.get(step) if step is not None else None
        if found is None or not args or not self._torch.is_tensor(args[0]):
            return None
        if step == found.steps[-1] and found.placed is None:
            found.placed = self._place(found, args[0])
        made = self._run(func, args, kwargs)
        if step == found.steps[0] and found.placed is not None and made.shape == found.placed.shape:
            made, found.placed = found.placed, None  # a gradient that is referred to is not added to in place
        return (made,)

    def _place(self, found: _View, grad: Any) -> Any:
        """Place the gradient of a view among zeros, as its base lies."""
        base, view = found.base, found.view
        assert view is not None
        start = min(base.offset, view.offset)
        size = max(_end(base), _end(view)) - start
        self._placing = True
        try:
            for at, step in enumerate(view.strides):
                if step == 0 and view.shape[at] > 1:
                    grad = self._note(self._aten.sum.dim_IntList, (grad, [at], True))
            shape = list(grad.shape)
            zeros = self._note(self._aten.new_zeros.default, (grad, [size]))
            place = (zeros, shape, list(view.strides), view.offset - start)
            part = self._note(self._aten.as_strided.default, place)
            self._note(self._aten.copy_.default, (part, grad))
            whole = (zeros, list(base.shape), list(base.strides), base.offset - start)
            return self._note(self._aten.as_strided.default, whole)
        finally:
            self._placing = False


def _base(one: Any) -> Any:
    return one._base if one._is_view() else one  # noqa: SLF001  # torch has no public way


@cache
def _makes_view(func: Any) -> bool:
    returned = func._schema.returns  # noqa: SLF001  # torch has no public schema
    return len(returned) == 1 and returned[0].alias_info is not None


def _end(one: Tensor) -> int:
    return one.offset + 1 + sum((size - 1) * step for size, step in zip(one.shape, one.strides, strict=True))


def _overlaps(one: Tensor) -> bool:
    """Whether elements may share memory, repeated ones aside."""
    if 0 in one.shape:
        return True  # nothing to place: as it is
    dims = sorted(
        (step, size) for step, size in zip(one.strides, one.shape, strict=True) if size > 1 and step > 0
    )
    return any(step * size > following for (step, size), (following, _) in pairwise(dims))
