"""Operations that PyTorch composes of others, left to be composed while a compiler traces.

Tensors of a GPU that is not there count as on `meta` for PyTorch's dispatcher. Many composed operations have
a rule in Python for `meta` alone. Where one is met in that dispatcher's Python half, which the compiler uses,
the rule counts as a kernel of the device, and the operation is no longer composed: autograd meets it whole,
knows no gradient of it (as of `nll_loss`, the last step of `cross_entropy`), and gives none to all before it.
On a GPU that rule is never asked. Source: `resolve_key` in torch/_ops.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tracehunch.capture.program.composites import KERNELS

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def composed(torch: Any) -> Iterator[None]:
    """Hide the rules for `meta` of operations that are composed of others."""
    meta = torch._C.DispatchKey.Meta  # noqa: SLF001  # nothing public tells
    hidden = [(one, one.py_kernels.pop(meta)) for one in _operators(torch) if meta in one.py_kernels]
    _forget(one for one, _ in hidden)
    try:
        yield
    finally:
        for one, rule in hidden:
            one.py_kernels[meta] = rule
        _forget(one for one, _ in hidden)


def _operators(torch: Any) -> Iterator[Any]:
    """Give the operators of ATen that are composed of others, but those that a CUDA build has kernels for."""
    registered = torch._C._dispatch_get_registrations_for_dispatch_key  # noqa: SLF001  # nothing public tells
    for name in registered("CompositeImplicitAutograd"):
        space, _, rest = name.partition("::")
        plain, _, overload = rest.partition(".")
        packet = getattr(torch.ops.aten, plain, None) if space == "aten" and plain not in KERNELS else None
        if packet is not None and (overload or "default") in packet.overloads():
            yield getattr(packet, overload or "default")


def _forget(operators: Iterator[Any]) -> None:
    """Drop what the operators remember of who answers for which device."""
    for one in operators:
        one._dispatch_cache.clear()  # noqa: SLF001  # as torch does where a rule is added
