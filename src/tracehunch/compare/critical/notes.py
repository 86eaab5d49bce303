"""What a reader of a critical path must know: where it begins, what was inferred, what distorts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.compare.critical.model import Kind
from tracehunch.trace.model import Cat
from tracehunch.units import plural, share, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracehunch.compare.critical.graph import Graph
    from tracehunch.compare.critical.path import Stretches
    from tracehunch.tree import Tree

_HOST: Final = (Kind.OP, Kind.OUTSIDE, Kind.LAUNCH, Kind.CALL)
_MOSTLY: Final = 0.5
_SOME: Final = 0.01
_RECORD: Final = "enable_cuda_sync_events=True in the profiler's experimental_config records it"


def notes_of(
    tree: Tree,
    graph: Graph,
    apart: Stretches,
    kinds: Mapping[Kind, int],
    *,
    before_ns: int,
    residual_ns: int,
    averaged_over: int,
) -> Iterator[str]:
    """Yield what applies, the weightiest first."""
    total = sum(kinds.values())
    if not len(tree.trace.gpu.row):
        yield "no GPU activity was recorded: this is the host's path alone"
    elif unknown := apart.without_launch(graph.gpu.row):
        yield (
            f"{plural(unknown, 'GPU activity has', 'GPU activities have')} no launch in the trace: "
            "nothing says what the host did for them"
        )
    if before_ns:
        yield (
            f"it begins {time_us(before_ns / 1e3)} after the host does: until then the GPU was at work that "
            "was launched before, which belongs to what came before"
        )
    if kinds.get(Kind.COMMUNICATION):
        yield (
            "communication includes the time in which this rank waits for the others; what if takes "
            "their part to stay as it is"
        )
    if sum(kinds.get(kind, 0) for kind in _HOST) > _MOSTLY * total:
        yield "recording slows the host down: without the profiler its part is smaller"
    yield from _inferred(tree, graph)
    if kinds.get(Kind.UNKNOWN, 0) > _SOME * total:
        yield f"for {share(kinds[Kind.UNKNOWN], total)} of it nothing in the trace says what was waited for"
    if averaged_over:
        yield (
            "host and GPU overlap differently in each step: what if goes by the median change of "
            f"the {averaged_over} steps around it"
        )
    if tree.skewed:
        yield "the GPU's clock is behind the host's: it was set right by what no work can have been early"
    if residual_ns:
        yield f"simulated with nothing changed it is {time_us(residual_ns / 1e3)} off what was recorded"


def _inferred(tree: Tree, graph: Graph) -> Iterator[str]:
    guessed = sum(not wait.recorded for wait in graph.streams)
    if guessed:
        waits = plural(guessed, "wait of a stream for another is", "waits of streams for others are")
        yield f"{waits} inferred from when they were launched and ran; {_RECORD}"
    elif graph.host.waits and not tree.trace.rows(Cat.SYNC).size:
        waits = plural(len(graph.host.waits), "call", "calls")
        yield f"which work {waits} waited for is inferred; {_RECORD}"
