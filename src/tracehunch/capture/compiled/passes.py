"""Inductor's passes over graphs where they would compute on the GPU: constants, device names, trial runs."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def prepare(torch: Any) -> None:
    """Let Dynamo and Inductor build tables and patterns before a GPU is pretended: it would be in them."""
    from torch._inductor.fx_passes import joint_graph, post_grad  # noqa: PLC0415  # an optional dependency

    for module in (joint_graph, post_grad):
        module.lazy_init()
    torch.compile(torch.nn.functional.silu, backend="eager")(torch.zeros((), device="cpu"))


@contextmanager
def passes(torch: Any, timed: Callable[[Callable[[], Any]], float]) -> Iterator[None]:
    """Change the passes; `timed` stands for a trial run and returns its milliseconds."""
    from torch._inductor import compile_fx, constant_folding  # noqa: PLC0415  # an optional dependency
    from torch._inductor.fx_passes import joint_graph, post_grad  # noqa: PLC0415  # as above

    folded = constant_folding.ConstantFolder.run
    joint = compile_fx._recursive_joint_graph_passes  # noqa: SLF001  # nothing public is called with each graph

    def on_host(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _on_host(torch):
            return folded(self, *args, **kwargs)

    def renamed(graph_module: Any, *args: Any, **kwargs: Any) -> Any:
        on_gpu(torch, graph_module)
        _made_there(torch, graph_module)
        return joint(graph_module, *args, **kwargs)

    with ExitStack() as stack:
        for module in (joint_graph, post_grad):
            stack.enter_context(patch.object(module, "lazy_init", _nothing))
        stack.enter_context(patch.object(constant_folding.ConstantFolder, "run", on_host))
        stack.enter_context(patch.object(compile_fx, "_recursive_joint_graph_passes", renamed))
        stack.enter_context(_trials(timed))
        yield


def on_gpu(torch: Any, graph_module: Any) -> None:
    """Name the GPU in a graph where C++ was told that tensors are on `meta`."""
    meta, cuda = torch.device("meta"), torch.device("cuda", 0)
    for module in graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        changed = False
        for node in module.graph.nodes:
            if meta in [one for one in (*node.args, *node.kwargs.values()) if isinstance(one, torch.device)]:
                node.args = tuple(cuda if one == meta else one for one in node.args)
                node.kwargs = {name: cuda if one == meta else one for name, one in node.kwargs.items()}
                changed = True
        if changed:
            module.recompile()


def _made_there(torch: Any, graph_module: Any) -> None:
    """Name constants of `torch.tensor(..., device="cuda")` as on a GPU, where they are made, not moved there.

    Without one they are traced as made on the host and moved: Inductor moves them once, as it compiles, and
    the move would be in the name of the kernel. Source: "torch.tensor, lift_fresh, and device movement" in
    torch/csrc/utils/tensor_new.h.
    """
    lifted = torch.ops.aten.lift_fresh_copy.default
    moved = (torch.ops.prims.device_put.default, torch.ops.aten._to_copy.default)  # noqa: SLF001  # a name
    for node in graph_module.graph.nodes:
        made = node.args[0] if node.args and isinstance(node.args[0], torch.fx.Node) else None
        if made is None or made.target is not lifted or len(node.all_input_nodes) != 1:
            continue
        moves, lifts = (one.meta.get("source_fn_stack") for one in (node, made))
        if node.target in moved and moves and moves == lifts:
            node.meta["original_aten"] = made.meta["original_aten"]


def _on_host(torch: Any) -> Any:
    """Return a mode in which what is made on the GPU is made on the host: real numbers that are folded."""
    from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415  # an optional dependency
    from torch.utils._pytree import tree_map  # noqa: PLC0415  # as above

    def moved(value: Any) -> Any:
        return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value

    class OnHost(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            return func(*tree_map(moved, args), **tree_map(moved, kwargs or {}))

    return OnHost()


@contextmanager
def _trials(timed: Callable[[Callable[[], Any]], float]) -> Iterator[None]:
    """Predict a matrix product with padding and without, where Inductor would measure both."""
    from torch._inductor.fx_passes import pad_mm  # noqa: PLC0415  # an optional dependency

    changes: dict[str, Any] = {
        "has_triton": lambda: True,
        "get_do_bench": lambda: timed,
        "no_dispatch": nullcontext,
        "get_cached_should_pad": _nothing,
        "set_cached_should_pad": _nothing,
        "get_cached_base_mm_benchmark_time": _nothing,
        "set_cached_base_mm_benchmark_time": _nothing,
    }
    with ExitStack() as stack:
        for name, change in changes.items():
            if hasattr(pad_mm, name):
                stack.enter_context(patch.object(pad_mm, name, change))
        yield


def _nothing(*_: Any, **__: Any) -> None:
    return None
