"""How the CPU computes what only a GPU has an operation for, where values are followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.capture.program.recurrent import MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def substitutes(torch: Any) -> Mapping[Any, Callable[..., Any]]:
    """Return a function on real tensors for each operation that the CPU lacks."""
    aten = torch.ops.aten
    return {
        aten.cudnn_batch_norm.default: _batch_norm(torch),
        aten.cudnn_batch_norm_backward.default: _batch_norm_backward(torch),
        aten._cudnn_rnn.default: _recurrent(torch),  # noqa: SLF001  # an operator's name
    }


def _batch_norm(torch: Any) -> Callable[..., Any]:
    def run(x: Any, weight: Any, bias: Any, *rest: Any) -> Any:
        made = torch.ops.aten.native_batch_norm.default(x, weight, bias, *rest)
        return (*made, torch.empty(0, dtype=torch.uint8))

    return run


def _batch_norm_backward(torch: Any) -> Callable[..., Any]:
    def run(  # noqa: PLR0917  # as the schema has them
        x: Any, grad: Any, weight: Any, mean: Any, var: Any, kept_mean: Any, kept_var: Any, eps: float, _: Any
    ) -> Any:
        run_backward = torch.ops.aten.native_batch_norm_backward.default
        return run_backward(grad, x, weight, mean, var, kept_mean, kept_var, True, eps, [True] * 3)  # noqa: FBT003  # positional there

    return run


def _recurrent(torch: Any) -> Callable[..., Any]:
    names = {number: kind for kind, number in MODES.items()}

    def run(  # noqa: PLR0917  # as the schema has them
        x: Any, params: Any, each: int, flat: Any, hx: Any, cx: Any, mode: int, _hidden: int, _proj: int,
        layers: int, first: bool, dropout: float, train: bool, both: bool, sizes: Any, _drop: Any,
    ) -> Any:  # fmt: skip
        if sizes:
            raise NotImplementedError("packed sequences")
        state = hx if cx is None else (hx, cx)
        layer = getattr(torch._C._VariableFunctions, names[mode])  # noqa: SLF001  # as torch.nn calls them
        made = layer(x, state, params, each >= 4, layers, dropout, train, both, first)
        cell = made[2] if cx is not None else torch.empty(0)
        return (made[0], made[1], cell, torch.empty(0, dtype=torch.uint8), flat)

    return run
