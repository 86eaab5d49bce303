"""One process, one GPU: what loads data in workers, spreads over GPUs or ranks, or replays graphs.

Workers of a `DataLoader` and `DataParallel` on one GPU launch what one process does. Ranks and CUDA graphs
are stated as not known.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.capture.program.tape import Tape

_RANKS: Final = "ranks start to work together: what they exchange is not recorded"
_ONE_RANK: Final = "guess what one rank computes: the model without init_process_group and its wrapper"
_GRAPH: Final = "a CUDA graph is captured: what it replays is not recorded"
_WITHOUT: Final = "guess the function that is captured: the graph runs its kernels"
_SAVED: Final = "torch.save writes nothing here: the copies of tensors to the host are not counted"


@contextmanager
def single(torch: Any, tape: Tape) -> Iterator[None]:
    """Let a program that expects more than one process do its work in this one."""

    def ranks(*_: Any, **__: Any) -> None:
        raise tape.stop(_RANKS, _ONE_RANK)

    def saved(*_: Any, **__: Any) -> None:
        if tape.on:
            tape.obstacle(_SAVED, "leave checkpoints out of what is guessed")

    def replica(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    class Graph:
        """Cannot be captured without a GPU."""

        def __init__(self, *_: Any, **__: Any) -> None:
            raise tape.stop(_GRAPH, _WITHOUT)

    changes = [
        (torch, "save", saved),
        (torch.nn.DataParallel, "forward", replica),
        (torch.cuda, "CUDAGraph", Graph),
        (torch.cuda.graphs, "CUDAGraph", Graph),
        *((owner, "init_process_group", ranks) for owner in _distributed(torch)),
        *_loading(),
    ]
    with ExitStack() as stack:
        for owner, name, instead in changes:
            stack.enter_context(patch.object(owner, name, instead))
        yield


def _distributed(torch: Any) -> list[Any]:
    if not torch.distributed.is_available():
        return []
    from torch.distributed import distributed_c10d  # noqa: PLC0415  # an optional dependency

    return [torch.distributed, distributed_c10d]


def _loading() -> list[tuple[Any, str, Callable[..., Any]]]:
    """Return how data are loaded: by this process, pinned where that is asked for."""
    from torch.utils.data import dataloader  # noqa: PLC0415  # an optional dependency

    base, in_one = dataloader._BaseDataLoaderIter, dataloader._SingleProcessDataLoaderIter  # noqa: SLF001  # torch has no public way
    start = base.__init__

    def begin(self: Any, loader: Any) -> None:
        pins = loader.pin_memory
        with patch.object(loader, "pin_memory", new=False):  # it would look for a GPU
            start(self, loader)
        self._pin_memory = pins

    def without_workers(loader: Any) -> Any:
        with patch.object(loader, "num_workers", 0), patch.object(loader, "timeout", 0):
            return in_one(loader)

    return [(base, "__init__", begin), (dataloader, "_MultiProcessingDataLoaderIter", without_workers)]
