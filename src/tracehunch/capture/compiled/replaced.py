"""Operations in a graph that are composed of other ones on a GPU than elsewhere.

A graph is traced with tensors that say in C++ that they are on `meta`, so that C++ functions that ask for a
GPU do not compose what they would on one; see `composites` of the programs that are not compiled.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_CELLS: Final = ("lstm_cell", "gru_cell")
"""One kernel does all but the products; the other operations are taken apart alike, wherever they are."""


def replacements(
    torch: Any, attend: Callable[..., Any], instead: Mapping[str, Callable[..., Any]]
) -> Mapping[Any, Callable[..., Any]]:
    """Return what is put in the place of functions that a graph calls; `attend` is that of SDPA."""
    aten = torch.ops.aten
    attention, attended = aten.scaled_dot_product_attention, torch._C._nn.scaled_dot_product_attention  # noqa: SLF001  # torch has no public way
    found = {
        one: _on_gpu(one, attend)
        for one in (
            torch.nn.functional.scaled_dot_product_attention,
            attended,
            attention,
            attention.default,
        )
    }
    for name in _CELLS:
        for one in (getattr(torch, name), getattr(aten, name), getattr(aten, name).default):
            found[one] = _on_gpu(one, instead[name])
    return found


def in_graph(torch: Any, graph_module: Any, others: Mapping[Any, Callable[..., Any]]) -> None:
    """Replace the functions that a graph calls, and the graphs inside it."""
    for module in graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            if node.op == "call_function" and node.target in others:
                node.target = others[node.target]
        module.recompile()


@contextmanager
def inside(torch: Any, others: Mapping[Any, Callable[..., Any]]) -> Iterator[None]:
    """Replace them too in Python functions that are one call of a graph, as of `nn.MultiheadAttention`.

    The compiler calls itself for a mode or options: what is replaced already stays so.
    """
    name = "scaled_dot_product_attention"
    now = torch.nn.functional.scaled_dot_product_attention
    made = others.get(now, now)
    with (
        patch.object(torch.nn.functional, name, made),
        patch.object(torch._C._nn, name, made),  # noqa: SLF001  # torch has no public way
    ):
        yield


def _on_gpu(ordinary: Callable[..., Any], made: Callable[..., Any]) -> Callable[..., Any]:
    def replaced(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else next(iter(kwargs.values()))
        chosen = made if first.device.type == "cuda" else ordinary
        return chosen(*args, **kwargs)

    return replaced
