"""Operations whose results the compiler learns by running them on zeros: there is no GPU to run them on.

Where PyTorch has no rule that tells an operation's results without data, the compiler runs it for real, once,
on tensors of zeros on the device. Here what such operations return is told by a rule of this package, or else
by a run on the host, whose results are then taken as on the GPU. Source: `run_fallback_kernel` in
torch/_subclasses/fake_tensor.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tracehunch.capture.program.results import otherwise, results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@contextmanager
def fallbacks(torch: Any) -> Iterator[None]:
    """Stand for the runs on a GPU."""
    from torch._subclasses import fake_tensor  # noqa: PLC0415  # an optional dependency
    from torch.utils import _pytree as trees  # noqa: PLC0415  # as above

    ordinary = fake_tensor.run_fallback_kernel
    known = {**results(torch), **otherwise(torch)}

    def on_gpu(one: Any) -> bool:
        return isinstance(one, fake_tensor.FakeTensor) and one.fake_device.type == "cuda"

    def fallen_back(mode: Any, func: Any, flat: Sequence[Any], spec: Any, error: Any) -> Any:
        if func in known:
            args, kwargs = trees.tree_unflatten(flat, spec)
            with mode:
                return known[func](*args, **kwargs)
        found = ordinary(mode, func, flat, spec, error)
        place = next((one.fake_device for one in flat if on_gpu(one)), None)
        given = {id(one) for one in flat}

        def moved(one: Any) -> Any:
            if not isinstance(one, fake_tensor.FakeTensor) or id(one) in given:
                return one
            with mode:
                return torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device=place)

        return found if place is None else trees.tree_map(moved, found)

    with patch.object(fake_tensor, "run_fallback_kernel", fallen_back):
        yield
