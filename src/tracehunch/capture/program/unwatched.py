"""Steps that PyTorch takes in place when nothing watches them, most of them of the backward.

Where a mode listens, as while a program is recorded, some formulas give up their in-place operations
(`areAnyTensorSubclassLike` in torch/csrc/autograd/FunctionsManual.cpp and ATen/native), which costs a copy
that no run makes; others leave out a shortcut that they take by the values. The first are put back here, the
second are told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.capture.program.accumulation import Accumulation
    from tracehunch.capture.program.tape import Tape

_MATRIX: Final = 2  # dimensions
_BCE: Final = "BinaryCrossEntropyWithLogitsBackward0"
_UNCHECKED: Final = "_index_put_impl_.default"
_SELECTING: Final = tuple(  # value_selecting_reduction_backward
    f"{name}Backward{number}"
    for name, number in (
        ("Max", 0),
        ("Min", 0),
        ("Topk", 0),
        ("Sort", 0),
        ("Sort", 1),
        ("Median", 1),
        ("Nanmedian", 1),
        ("Kthvalue", 0),
        ("Mode", 0),
    )
)
_IN_PLACE: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("scatter.src", "scatter_.src", _SELECTING),
    (
        "scatter_add.default",
        "scatter_add_.default",
        ("GatherBackward0", "CummaxBackward0", "CumminBackward0"),
    ),
    ("index_add.default", "index_add_.default", ("IndexSelectBackward0",)),
    ("index_put.default", _UNCHECKED, ("IndexBackward0",)),
    ("put.default", "put_.default", ("TakeBackward0",)),
    ("index_fill.int_Tensor", "index_fill_.int_Tensor", ("TraceBackward0",)),
    ("masked_fill.Scalar", "masked_fill_.Scalar", ("Atan2Backward0",)),
    ("sub.Tensor", "sub_.Tensor", (_BCE,)),
    ("mul.Tensor", "mul_.Tensor", (_BCE,)),
)
"""An operation, the one in place, and the steps of the backward that do it on what they have made."""

_SHORTCUT: Final = ("ProdBackward0", "ProdBackward1", "CumprodBackward0")
"""Steps that ask the GPU whether a value is zero, and are much shorter where none is."""


_WHY: Final = (
    "the backward of {} is much shorter where no value is zero: only a run tells, the longer is counted"
)


class Unwatched:
    """Tells what a step of the backward does in a run from what it does while it is watched."""

    def __init__(self, torch: Any, tape: Tape, accumulation: Accumulation) -> None:
        aten = torch.ops.aten
        self._torch, self._tape, self._accumulation = torch, tape, accumulation
        self._linear = aten.linear.default
        self._add, self._add_in_place = aten.add.Tensor, aten.add_.Tensor
        self._in_linear = False
        self._unchecked = _operator(aten, _UNCHECKED)
        self._in_place: Mapping[Any, tuple[Any, tuple[str, ...]]] = {
            _operator(aten, name): (_operator(aten, other), steps) for name, other, steps in _IN_PLACE
        }

    def instead(self, func: Any, args: Any) -> tuple[Any, Any]:
        """Return what a run calls in the place of an operation, and with what."""
        step = self._accumulation.step
        if not step or self._torch.is_grad_enabled():
            return func, args
        if step in _SHORTCUT:
            self._tape.obstacle(_WHY.format(step.partition("Backward")[0].lower()))
        other, steps = self._in_place.get(func, (func, ()))
        if step not in steps or not self._accumulation.own(args):
            return func, args
        # the forward has checked the indices: `unsafe`
        return other, (*args, True) if other is self._unchecked else args

    def linear(self, input: Any, weight: Any, bias: Any = None) -> Any:  # noqa: A002  # the schema's name
        """Do what `linear` is made of, knowing that it is it."""
        if input.dim() > _MATRIX and not input.is_contiguous() and folds(self._torch, weight):
            made = product(input, weight)
            return made if bias is None else self._add_in_place(made, bias)
        was, self._in_linear = self._in_linear, True
        try:
            return self._linear.decompose(input, weight, bias)
        finally:
            self._in_linear = was

    def noted(self, func: Any) -> Any:
        """Return what a run calls that returns the same: `linear` adds its bias to the product in place."""
        return self._add_in_place if self._in_linear and func is self._add else func


def folds(torch: Any, weight: Any) -> bool:
    """Whether `matmul` copies rows that lie apart to multiply them at once, in inference mode.

    It does so for weights that require a gradient, as their transposes then do; here, below autograd, they do
    not. Source: `should_fold` in ATen/native/LinearAlgebra.cpp.
    """
    return bool(torch.is_inference_mode_enabled() and weight.requires_grad)


def product(rows: Any, weight: Any) -> Any:
    """Return rows, whatever dimensions they have, times a transposed weight, as one product."""
    return rows.reshape(-1, rows.shape[-1]).mm(weight.t()).view(*rows.shape[:-1], -1)


def _operator(aten: Any, name: str) -> Any:
    packet, overload = name.split(".")
    return getattr(getattr(aten, packet), overload)
