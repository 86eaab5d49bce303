"""Rows of the host that are no ordinary launch: waits, blocking copies, allocations, loading, compiling."""

import re
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.facts.counts import waits_of
from tracehunch.trace.model import LAUNCH_CATS, Cat, Int8, Int64
from tracehunch.tree import NONE, Api, Tree
from tracehunch.tree.names import names_that

Bool = NDArray[np.bool_]
Wanted = Callable[[str], bool]

_LARGE_BYTES: Final = 64 << 10
"""A copy from pageable memory of up to so many bytes is staged by the driver, which does not wait for it."""

_LOADING_OVERHEAD: Final = ("Lazy Function Loading", "Runtime Triggered Module Loading")
"""Overhead rows that are the program's own: CUDA loads code when it is first used."""
_NO_OVERHEAD: Final = "Command Buffer Full"  # so many launches that the driver has to wait for the GPU

_LOADING: Final = re.compile(
    r"(?:cu|cuda|hip)(?:Module(?:Load|GetFunction)|Library(?:Load|Get)|KernelGetFunction)"
)
_HOST_MEMORY: Final = re.compile(
    r"(?:cuda|cu|hip)(?:Host(?:Alloc|Malloc|Free|Register|Unregister)|MallocHost|FreeHost|Mem(?:Alloc|Free)Host)"
)
_COMPILING: Final = re.compile(
    r".*\(dynamo_timed\)$|TorchDynamo (?!Cache Lookup)|(?:TORCHDYNAMO|dynamo|entire_frame_compile)$"
    r"|inductor_do_bench_using_profiling",
    re.DOTALL,
)
_OWN: Final = re.compile(
    r"Optimizer\.(?:step|zero_grad)#|Torch-Compiled Region|## Call CompiledFxGraph |TorchDynamo "
    r"|AOTDispatcher |Pregraph bytecode|CompiledFunction|graph_\d+_inductor_wrapper_call"
)
_LOADING_DATA: Final = re.compile(r"enumerate\(\w*(?:DataLoader|DataPipe)\w*\)#")
_PAGEABLE: Final = re.compile(r"Memcpy \w+ \(.*Pageable")


def is_loading_code(name: str) -> bool:
    """Tell overhead rows and calls in which CUDA loads code."""
    return name in _LOADING_OVERHEAD or _LOADING.match(name) is not None


def is_the_profilers(name: str) -> bool:
    """Tell overhead rows that would not be without the profiler."""
    return not is_loading_code(name) and name != _NO_OVERHEAD


def is_data_loading(name: str) -> bool:
    """Tell the annotation that torch.utils.data puts around the making of one batch."""
    return _LOADING_DATA.match(name) is not None


def is_compiling(name: str) -> bool:
    """Tell the annotations around torch.compile at work, as against running what it made."""
    return _COMPILING.match(name) is not None


def is_pytorchs_own(name: str) -> bool:
    """Tell annotations in which Python code is PyTorch's: optimizers, wrappers of compiled code.

    Wrappers of models (DDP, FSDP) are none of them: they call the user's forward.
    """
    return _OWN.match(name) is not None


def named(tree: Tree, wanted: Wanted, rows: Int64 | None = None) -> Bool:
    """Mask of the rows (all if None) whose name satisfies ``wanted``."""
    name = tree.trace.name if rows is None else tree.trace.name[rows]
    known = names_that(tree.trace, wanted)
    hit: Bool = known[name] if known.any() else np.zeros(name.size, dtype=bool)
    return hit


def were_ops_recorded(tree: Tree) -> bool:
    """Whether the profiler recorded ops: then it recorded annotations, too, if there were no ops."""
    return bool(tree.ops.size or tree.trace.rows(Cat.USER_ANNOTATION).size)


def calls(tree: Tree) -> Bool:
    """Mask of the runtime and driver calls."""
    return _is_one_of(tree.trace.cat, LAUNCH_CATS)


def annotations(tree: Tree) -> Bool:
    """Mask of the rows that can be annotations: compiled regions are ops."""
    return _is_one_of(tree.trace.cat, (Cat.USER_ANNOTATION, Cat.CPU_OP))


def _is_one_of(codes: Int8, wanted: Iterable[int]) -> Bool:
    """Do what ``np.isin`` does, which is slow for so few values."""
    found = np.zeros(codes.size, dtype=bool)
    for one in wanted:
        found |= codes == one
    return found


def allocating(tree: Tree) -> Bool:
    """Mask of the calls that allocate or free memory of the device, or pinned memory of the host."""
    host_memory = calls(tree) & named(tree, lambda name: _HOST_MEMORY.match(name) is not None)
    return _is_one_of(tree.api, (Api.ALLOC, Api.FREE)) | host_memory


def copying(tree: Tree) -> Bool:
    """Mask of the calls in which the host saw a large copy through: from or to pageable memory, or blocking.

    The wait that follows a copy to the device in the same op is part of it.
    """
    trace = tree.trace
    rows, launch = launched(tree, of_at_least=_LARGE_BYTES)
    waits = waits_of(tree)
    pageable = named(tree, lambda name: _PAGEABLE.match(name) is not None, rows)
    to_device = named(tree, lambda name: name.startswith("Memcpy HtoD"), rows)
    found, is_wait = np.zeros((2, len(trace)), dtype=bool)
    is_wait[waits] = True
    found[launch[pageable | is_wait[launch]]] = True
    ops = tree.op[launch[pageable & to_device]]
    found[waits[np.isin(tree.op[waits], ops[ops != NONE])]] = True
    return found


def waiting(tree: Tree) -> Bool:
    """Mask of the calls in which the host waits for the GPU; a small copy back to pageable memory is one."""
    rows, launch = launched(tree)
    back = named(
        tree, lambda name: name.startswith("Memcpy DtoH") and _PAGEABLE.match(name) is not None, rows
    )
    found = np.zeros(len(tree.trace), dtype=bool)
    found[waits_of(tree)] = True
    found[launch[back]] = True
    return found


def launched(tree: Tree, of_at_least: int | None = None) -> tuple[Int64, Int64]:
    """Return GPU rows whose launch is known, and the launches; of larger copies only, if a size is given."""
    table = tree.trace.gpu
    rows = table.row.astype(np.int64)
    launch = tree.launch[rows].astype(np.int64)
    chosen = launch != NONE
    if of_at_least is not None:
        chosen &= (tree.trace.cat[rows] == Cat.MEMCPY) & (table.bytes > of_at_least)
    return rows[chosen], launch[chosen]
