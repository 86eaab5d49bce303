"""Checks for infinite numbers and NaN: where values are not known, there are none, as in nearly all runs.

Models and training loops stop or clamp where they find some (`if torch.isnan(loss)`).
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.capture.program.known import Known

_ANSWERS: Final = {"isfinite": True, "isinf": False, "isnan": False, "isneginf": False, "isposinf": False}


@contextmanager
def finite(torch: Any, known: Known) -> Iterator[None]:
    """Take all unknown values as finite where a program asks whether they are."""
    from torch._subclasses.fake_tensor import FakeTensor  # noqa: PLC0415  # an optional dependency

    base = torch._C.TensorBase  # noqa: SLF001  # where the methods are
    with ExitStack() as stack:
        for name, answer in _ANSWERS.items():
            stack.enter_context(patch.object(torch, name, _asked(torch, known, getattr(torch, name), answer)))
            method = _asked(torch, known, getattr(base, name), answer)
            stack.enter_context(patch.object(FakeTensor, name, method, create=True))
        yield


def _asked(torch: Any, known: Known, ask: Callable[..., Any], answer: bool) -> Callable[..., Any]:
    def asked(*args: Any, **kwargs: Any) -> Any:
        made = ask(*args, **kwargs)
        if known.of(made) is None and known.fits(made):
            known.keep(made, known.aside(lambda: torch.full(tuple(made.shape), answer, device="cpu")))
        return made

    return asked
